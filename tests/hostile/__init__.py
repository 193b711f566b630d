"""Hostile inputs: generators of files that must not cost any other file anything.

A module per kind of reader; each function with the decorator `hostile` writes one case.
`test_hostile.py` reads every case through the command line beside good files.
"""
