"""Records: CSV, JSON lines and Parquet, in columns from the bytes to the table."""
