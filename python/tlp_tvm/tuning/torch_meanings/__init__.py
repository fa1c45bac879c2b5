"""What operators of torch are in terms of others that TVM's importers know, written with torch's functions.

The modules have tables from an operator's name, as "mish", to a function of its arguments in the order of
its schema. `table.py` joins them.
"""
