"""Whole documents: JSON, YAML, metrics, answers of APIs."""
