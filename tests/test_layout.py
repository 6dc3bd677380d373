"""How the package hangs together: who may import whom, what `import subword` costs, and what has a docstring."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import subword

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "subword"

# The parts of the package, from the ground up. A part imports itself and the rows above its own, nothing else.
LEVELS: list[set[str]] = [
    {
        "errors",
        "bpe.reference",
        "bpe.sentencepiece_reference",
        "longest_match.reference",
        "unigram.reference",
        "wordpiece.reference",
    },
    {"_core", "arguments", "writing"},
    {"patterns", "charsmap", "bpe", "longest_match", "unigram", "wordpiece", "byte_alphabet", "special"},
    {"stages", "models", "scripts"},
    {"spec"},
    {"bert", "reference_models", "reference_stages", "encoding", "corpus"},
    {"engine", "sampling"},
    {"remap"},
    {"tokenizer"},
    {"counts", "pruning"},
    {"counts_file"},
    {"provider", "counting", "checkpoint", "sizes", "wanted", "training_wordpiece", "training_baselines"},
    {"training", "training_sentencepiece"},
    {"extending"},
    {"formats", "audits", "explain", "cluster", "chat", "batches"},
    {"compat", "differences", "embeddings", "with_transformers"},
    {"doctor"},
    {"report"},
    {"__init__"},
    {"cli", "web"},
    {"__main__"},
]
LEVEL = {part: level for level, parts in enumerate(LEVELS) for part in parts}

# The exception: doors to rooms further up, opened inside a function.
DOORS: dict[str, set[str]] = {
    "tokenizer": {"batches", "chat", "extending", "formats", "pruning", "sizes", "with_transformers"},
    "counts": {"counts_file"},
    "counting": {"cluster"},
    "encoding": {"report"},
    "remap": {"formats", "embeddings"},
}

MODULES = {".".join(path.relative_to(PACKAGE).with_suffix("").parts): path for path in sorted(PACKAGE.rglob("*.py"))}


def part_of(module: str) -> str:
    """The row of LEVELS that a module belongs to: the longest name there that it starts with."""
    module = module.removesuffix(".__init__")
    names = module.split(".")
    for length in range(len(names), 0, -1):
        if (name := ".".join(names[:length])) in LEVEL:
            return name
    raise AssertionError(f"subword.{module}: give it a place in LEVELS (tests/test_layout.py)")


def imports_of(module: str, path: Path) -> Iterator[tuple[str, int, bool]]:
    """Each module of the package that a file imports, with the line, and whether that is inside a function."""
    package = ["subword", *module.split(".")[:-1]]
    tree = ast.parse(path.read_text("utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {child for function in functions for child in ast.walk(function)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *filter(None, [node.module])])
            names = [f"{source}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "subword":
                yield module_of(name), node.lineno, node in inside


def module_of(name: str) -> str:
    """`subword.spec.BPE` is imported from the module `spec`, `subword.train` from `__init__`."""
    parts = name.split(".")[1:]
    while parts and parts != ["_core"] and not PACKAGE.joinpath(*parts).is_dir() and ".".join(parts) not in MODULES:
        parts.pop()
    return ".".join(parts) or "__init__"


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_one_way(module: str) -> None:
    here = part_of(module)
    for imported, line, inside in imports_of(module, MODULES[module]):
        there = part_of(imported)
        allowed = there == here or LEVEL[there] < LEVEL[here] or (inside and there in DOORS.get(here, ()))
        assert allowed, f"{MODULES[module].relative_to(ROOT)}:{line}: subword.{here} may not import subword.{there}"


def test_doors_are_used() -> None:
    opened = {
        (part_of(module), part_of(imported))
        for module, path in MODULES.items()
        for imported, _, inside in imports_of(module, path)
        if inside
    }
    assert opened >= {(part, other) for part, others in DOORS.items() for other in others}


def test_a_reference_imports_nothing_of_the_package() -> None:
    references = {name: path for name, path in MODULES.items() if name.endswith("reference")}
    assert references
    for module, path in references.items():
        assert list(imports_of(module, path)) == []


HEAVY = """
    typer click rich pygments pooch requests urllib3 zstandard pydantic
    pandas pyarrow duckdb ray torch transformers jinja2 tokenizers tiktoken sentencepiece huggingface_hub
    matplotlib altair vl_convert bz2 lzma starlette uvicorn IPython asyncio unittest
    subword.cli subword.report subword.web
""".split()


def test_import_is_light() -> None:
    code = f"import subword, sys; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_import_takes_few_modules() -> None:
    """What it takes in time, without a clock: each module costs some tenths of a millisecond."""
    code = "import numpy, sys; before = set(sys.modules); import subword; print(len(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 10 < int(done.stdout) < 100


@pytest.mark.parametrize("module", [module for module in MODULES if part_of(module) not in ("cli", "report")])
def test_the_library_prints_nothing(module: str) -> None:
    for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))):
        prints = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        assert not prints, f"{MODULES[module].relative_to(ROOT)}:{node.lineno} prints"


def public_things() -> Iterator[tuple[str, object]]:
    for name in subword.__all__:
        thing = getattr(subword, name)
        if name == "__version__":
            continue
        yield name, thing
        if inspect.isclass(thing):
            for attribute, value in vars(thing).items():
                if not attribute.startswith("_") and (callable(value) or isinstance(value, property)):
                    yield f"{name}.{attribute}", value


@pytest.mark.parametrize(
    ("name", "thing"), [*public_things()], ids=lambda value: value if isinstance(value, str) else ""
)
def test_public_names_have_docstrings(name: str, thing: object) -> None:
    doc = (thing.__doc__ or "").strip()
    assert doc, f"subword.{name} has no docstring"
    assert not doc.startswith(f"{name}("), f"subword.{name} has only the docstring that dataclass makes"


def test_all_public_names_are_there() -> None:
    assert all(hasattr(subword, name) for name in subword.__all__)


def test_the_core_knows_nothing_of_python_opens_no_file_and_prints_nothing() -> None:
    sources = sorted((ROOT / "crates" / "core" / "src").rglob("*.rs"))
    assert sources
    for path in sources:
        text = path.read_text("utf-8")
        for word in ("pyo3", "std::fs", "std::net", "std::process", "std::env", "println!", "eprintln!"):
            assert word not in text, f"{path.relative_to(ROOT)} has {word}"
