"""The manual: pages made from the definitions, the queries, the models and the code."""
