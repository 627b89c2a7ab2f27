from xdsl.dialects.builtin import ModuleOp


def outline_parallel(module: ModuleOp) -> None:
    pass
