"""The parts of `python -m functorch_like`, in files of one idea each, to read and to import.

`data` loads the handwritten digits, `models` builds networks from functions and pytrees, `training` fits one network,
`ensemble` fits many at once, `persample` and `curvature` look at the fitted one; `costs`, `progress` and `report` show
what happened, and `digits` puts them in order.
"""
