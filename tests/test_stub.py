"""The stub of the core, `_core.pyi`, says what the built module has: no more, no less, with the same parameters.

`make lint` has mypy's stubtest compare the two as well.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from subword import _core

STUB = ast.parse((Path(__file__).parent.parent / "src" / "subword" / "_core.pyi").read_text("utf-8"))
FUNCTIONS = [node for node in STUB.body if isinstance(node, ast.FunctionDef)]
CLASSES = [node for node in STUB.body if isinstance(node, ast.ClassDef)]
METHODS = [(cls, node) for cls in CLASSES for node in cls.body if isinstance(node, ast.FunctionDef)]


def parameters(node: ast.FunctionDef) -> list[str]:
    """Names, with `=` where there is a default, and `/` and `*` where they stand."""
    spec = node.args
    positional = [arg.arg for arg in spec.posonlyargs + spec.args]
    required = len(positional) - len(spec.defaults)
    names = [name + "=" * (i >= required) for i, name in enumerate(positional)]
    if spec.posonlyargs:
        names.insert(len(spec.posonlyargs), "/")
    if spec.kwonlyargs:
        names.append("*")
    keywords = zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
    return names + [arg.arg + "=" * (default is not None) for arg, default in keywords]


def built_parameters(thing: object) -> list[str]:
    """The same, of the built module."""
    names: list[str] = []
    kinds = inspect.Parameter
    found = list(inspect.signature(thing).parameters.values())  # type: ignore[arg-type]
    for i, parameter in enumerate(found):
        if parameter.kind is kinds.KEYWORD_ONLY and "*" not in names:
            names.append("*")
        names.append(parameter.name + "=" * (parameter.default is not kinds.empty))
        last = i + 1 == len(found) or found[i + 1].kind is not kinds.POSITIONAL_ONLY
        # `self` and `cls` are positional-only in every built method; a stub need not say so
        if parameter.kind is kinds.POSITIONAL_ONLY and last and i > 0:
            names.append("/")
    return names


def public(names: object) -> set[str]:
    return {name for name in names if not name.startswith("_")}  # type: ignore[attr-defined]


def test_module_has_what_the_stub_says() -> None:
    assert public(vars(_core)) == {node.name for node in FUNCTIONS + CLASSES if not node.name.startswith("_")}
    assert isinstance(_core.__version__, str)


@pytest.mark.parametrize("node", CLASSES, ids=lambda node: node.name)
def test_class_has_what_the_stub_says(node: ast.ClassDef) -> None:
    built = getattr(_core, node.name)
    assert public(vars(built)) == {method.name for _, method in METHODS if _ is node and method.name != "__new__"}
    assert ast.get_docstring(node)


@pytest.mark.parametrize("node", FUNCTIONS, ids=lambda node: node.name)
def test_function_has_the_parameters_of_the_stub(node: ast.FunctionDef) -> None:
    assert built_parameters(getattr(_core, node.name)) == parameters(node)


@pytest.mark.parametrize(("cls", "node"), METHODS, ids=[f"{cls.name}.{node.name}" for cls, node in METHODS])
def test_method_has_the_parameters_of_the_stub(cls: ast.ClassDef, node: ast.FunctionDef) -> None:
    built = getattr(_core, cls.name)
    if any(isinstance(decorator, ast.Name) and decorator.id == "property" for decorator in node.decorator_list):
        assert inspect.isdatadescriptor(vars(built)[node.name])
    elif node.name == "__new__":
        assert built_parameters(built) == parameters(node)[1:]
    else:
        assert built_parameters(vars(built)[node.name]) == parameters(node)
