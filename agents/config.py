"""Configurations of training runs: where they lie, how they are read, and the command line."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Sequence
from dataclasses import MISSING, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar, get_args, get_type_hints

import msgspec
import yaml

from domino_env.rules import Rules

_HERE = Path(__file__).resolve().parent

# In a checkout configs/ stands at the top of the tree; in an installed package beside this file.
CONFIGS = next(p for p in (_HERE / "configs", _HERE.parent / "configs") if p.is_dir())


class ConfigError(ValueError):
    """A configuration that cannot be used; one line."""


class Configuration(Protocol):
    """A dataclass of settings with the rules of a game among them."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def rules(self) -> dict[str, Any] | list[dict[str, Any]]:
        """A preset and fields that override it, or a list of such."""
        ...


C = TypeVar("C", bound=Configuration)


def config_path(name: str) -> Path:
    """The file of a config: `name` itself if it ends in .yaml, else that of a shipped config.

    A config in a folder of them is called so: `policies/cabra-2`. Raises `FileNotFoundError`,
    listing what is shipped, if there is no such file.
    """
    path = Path(name) if name.endswith(".yaml") else CONFIGS / f"{name}.yaml"
    if not path.is_file():
        raise FileNotFoundError(f"config: there is no {name!r}, shipped are {_shipped_configs()}")
    return path


def _shipped_configs() -> str:
    """The names of all shipped configs, each folder's together: `cabra; policies/ cabra-2, ...`."""
    folders: dict[Path, list[str]] = {}
    for path in sorted(CONFIGS.rglob("*.yaml"), key=lambda path: (len(path.parts), path)):
        folders.setdefault(path.parent.relative_to(CONFIGS), []).append(path.stem)
    return "; ".join(
        ("" if folder == Path() else f"{folder.as_posix()}/ ") + ", ".join(names)
        for folder, names in folders.items()
    )


def read_config(path: Path, kind: type[C], changes: Sequence[str] = ()) -> C:
    """The configuration in a YAML file, with `--field value` changes, checked strictly.

    Raises `ConfigError` or `RulesError`: what, found, expected.
    """
    try:
        found = read_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from None
    if found is None:
        found = {}
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: found {type(found).__name__}, expected fields and values")
    config = checked(found, kind, str(path))
    return (
        checked({**found, **_changed(changes, found, kind)}, kind, "train") if changes else config
    )


_IN_WORDS = {
    "`int`": "an integer",
    "`int | null`": "an integer or null",
    "`float`": "a number",
    "`bool`": "true or false",
    "`bool | null`": "true, false or null",
    "`array`": "a list",
    "`object`": "a preset and fields",
    "`object | array`": "a preset and fields, or a list of such",
    "`str` matching regex '^(cpu|cuda)$'": "cpu or cuda",
}


class _Loader(yaml.SafeLoader):
    """YAML without objects, and with `1e-3` as the number that YAML 1.2 has in it."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), None
)


def read_yaml(text: str) -> Any:
    """What a YAML text says; `ValueError`, one line, if it is none."""
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from None


def checked(found: dict[str, Any], kind: type[C], where: str) -> C:
    """A mapping as a configuration: types, ranges, names of fields, rules."""
    for name in found:
        _check_name(str(name), kind, where)
    try:
        config = msgspec.convert(found, kind)
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at ")
        name = re.findall(r"\w+", place.partition("$.")[2])[0]
        expected = text.partition(", got ")[0].replace("E", "e", 1)
        if expected.startswith("Invalid enum value"):
            expected = f"expected one of {', '.join(get_args(get_type_hints(kind)[name]))}"
        for kind_name, words in _IN_WORDS.items():
            expected = expected.replace(kind_name, words)
        raise ConfigError(f"{where}: {name}: found {found[name]!r}, {expected}") from None
    for rules in config.rules if isinstance(config.rules, list) else [config.rules]:
        Rules.from_dict(rules)
    return config


def _check_name(name: str, kind: type[Configuration], where: str) -> None:
    names = [field.name for field in fields(kind)]
    if name not in names:
        near = get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(names)}"
        raise ConfigError(f"{where}: there is no field {name!r}, {hint}")


def _changed(
    changes: Sequence[str], found: dict[str, Any], kind: type[Configuration]
) -> dict[str, Any]:
    """`--field value` and `--field=value` pairs; `--rules.seats 4` changes a field of the rules."""
    words = split_options(changes)
    if len(words) % 2:
        raise ConfigError(f"train: found {words[-1]!r} without a value, expected --field value")
    options = [_option(*pair, kind) for pair in zip(words[::2], words[1::2], strict=True)]
    result: dict[str, Any] = {}
    for name, rule, value in sorted(options, key=lambda option: option[1] != ""):
        if rule:  # after --rules NAME, wherever that stood
            result["rules"] = {**_rules_in({**found, **result}, kind), rule: value}
        elif name == "rules" and isinstance(value, str):
            result["rules"] = {"preset": value}
        else:
            result[name] = value
    return result


def _option(option: str, text: str, kind: type[Configuration]) -> tuple[str, str, Any]:
    """A pair of words as a field, the field of the rules if that is what it is, and the value."""
    if not option.startswith("--"):
        raise ConfigError(f"train: found {option!r}, expected --field value")
    name, dot, rule = option[2:].replace("-", "_").partition(".")
    _check_name(name, kind, "train")
    if dot and not (name == "rules" and rule):
        raise ConfigError(f"train: found {option!r}, expected --{name} or --rules.FIELD")
    try:
        return name, rule, read_yaml(text)
    except ValueError:
        raise ConfigError(f"train: found {text!r} for {option}, expected a value") from None


def _rules_in(found: dict[str, Any], kind: type[Configuration]) -> dict[str, Any]:
    """The rules of a configuration that is not checked yet."""
    rules = found.get("rules", kind.__dataclass_fields__["rules"].default_factory())
    if not isinstance(rules, dict):
        raise ConfigError(f"rules: found {rules!r}, expected one preset and fields to change")
    return rules


def split_options(words: Sequence[str]) -> list[str]:
    """The words of a command line, each `--field=value` among them as two."""
    parts = (word.split("=", 1) if word.startswith("--") else [word] for word in words)
    return [part for pair in parts for part in pair]


def described(kind: type[Configuration]) -> str:
    """The fields of a configuration, their defaults, and the text below each, as a list."""
    lines = []
    for node in ast.walk(ast.parse(inspect.getsource(kind))):
        if isinstance(node, ast.ClassDef):
            for entry, text in zip(node.body[:-1], node.body[1:], strict=True):
                if isinstance(entry, ast.AnnAssign) and isinstance(text, ast.Expr):
                    name = ast.unparse(entry.target)
                    value = kind.__dataclass_fields__[name].default
                    shown = "" if value is MISSING else str(value)
                    lines.append(f"  --{name:<16} {shown:<12} {ast.literal_eval(text.value)}")
    return "\n".join(lines)
