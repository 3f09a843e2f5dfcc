"""The paper's experiment, and why the defaults are what they are: two pages from one command.

Run from the root of the repository: ``python -m experiments results``, or ``defaults``.
"""
