"""What commands print: ruled tables, dumps of keys and values, paragraphs, matrices, walks."""
