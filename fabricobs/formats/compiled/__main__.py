"""`make kernels`: compile the kernels whose sources have changed to LLVM code, and keep it."""

from fabricobs.formats.compiled.jit_cache import SOURCES, compile_ir, is_current, keep_ir
from fabricobs.printing import note


def main() -> None:
    """Bring the LLVM code in the repository up to date."""
    for module in SOURCES:
        if not is_current(module):
            keep_ir(module, compile_ir(module))
            note(f"{module}: compiled anew")


if __name__ == "__main__":
    main()
