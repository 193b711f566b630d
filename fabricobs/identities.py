"""The identity of each file of an input, worked out from all files together before any is read."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path, PurePath

from fabricobs.formats.archive import Member
from fabricobs.formats.budget import Allowance
from fabricobs.formats.decompression import SourceError
from fabricobs.formats.identity import Identity
from fabricobs.formats.identity.layout import counter_tree
from fabricobs.formats.identity.naming import (
    BUNDLE_FILES,
    Naming,
    named_after,
    read_bundle_file,
)
from fabricobs.formats.recognition.catalogue import Catalogue, load_catalogue
from fabricobs.host_maps import MOST_BYTES, aliases_in, may_be_host_map
from fabricobs.inputs import InputFile, Options, path_text
from fabricobs.remote import local_copies


class Identities:
    """Answers whose each file of an input is; files below one directory are one tree.

    `no_maps` are the names of those that are known to be no host map.
    """

    def __init__(
        self, files: Sequence[InputFile], options: Options, no_maps: Container[str] = ()
    ) -> None:
        trees: dict[str, list[InputFile]] = {}
        for file in files:
            trees.setdefault(_root_of(file), []).append(file)
        maps = [f for f in files if _may_be_host_map(f) and f.name not in no_maps]
        given = ((path, file.name) for file, path in _at_hand(maps))
        self.aliases = aliases_in(given, load_catalogue(options.content))
        options = replace(options, aliases=tuple(self.aliases.items()))
        self._trees = {root: _naming(root, tree, options) for root, tree in trees.items()}

    def of(self, file: InputFile) -> Identity:
        """Return the identity of a file."""
        return self._trees[_root_of(file)].of(_path_of(file))


def _root_of(file: InputFile) -> str:
    return file.root if file.below else str(PurePath(file.root).parent)


def _path_of(file: InputFile) -> str:
    return path_text(file.below_root)


def _may_be_host_map(file: InputFile) -> bool:
    if file.listed is not None and file.listed[0] > MOST_BYTES:
        return False
    return not file.below or may_be_host_map(file.below)


def _at_hand(files: Sequence[InputFile]) -> Iterator[tuple[InputFile, Path]]:
    """Yield each file with where it lies here; what is wrong with others is told when planned."""
    with closing(local_copies([(file.path, 0) for file in files])) as copies:
        for file, here in zip(files, copies, strict=True):
            with suppress(SourceError):
                yield file, here()


def _naming(root: str, files: Sequence[InputFile], options: Options) -> Naming:
    texts = {}
    bundle = [file for file in files if file.below_root.name in BUNDLE_FILES]
    for file, path in _at_hand(bundle):
        text = read_bundle_file(path)
        if text is not None:
            texts[_path_of(file)] = text
    paths = [_path_of(file) for file in files]
    return Naming(
        paths,
        options.tzinfo,
        modified=_modified(files, paths),
        patterns=options.host_from,
        aliases=dict(options.aliases),
        texts=texts,
        where=path_text(root).rstrip("/"),
        named=named_after(path_text(root)),
    )


def _is_of_a_bundle(name: str) -> bool:
    return PurePath(name).name in BUNDLE_FILES


def _names_hosts(name: str) -> bool:
    return _is_of_a_bundle(name) or may_be_host_map(name)


def _modified(files: Sequence[InputFile], paths: Sequence[str]) -> dict[str, int]:
    """Return when the files of copied trees of counters were changed, in microseconds."""
    modified: dict[str, int] = {}
    for file, path in zip(files, paths, strict=True):
        if counter_tree(path) is not None:
            with suppress(OSError):
                modified[path] = file.size_and_change()[1]
    return modified


def identities_within(
    members: Callable[[Callable[[str], bool]], Iterable[Member]],
    shown: Path,
    origin: Identity,
    catalogue: Catalogue,
    options: Options,
    allowance: Allowance,
) -> Naming:
    """Return the identities of the members of an archive, which is a tree of its own.

    `origin` is what the archive's own path tells, `shown` how it is called. Its members are listed
    first, and none unpacked but those that name hosts or a time: `members` is told which. A host
    map among them counts for them beside those of the input.
    """
    aliases = dict(options.aliases)
    paths: list[str] = []
    texts: dict[str, str] = {}
    modified: dict[str, int] = {}
    with suppress(SourceError, OSError):  # one that breaks off is told when it is read
        for member in members(_names_hosts):
            if allowance.is_used_up():
                break  # told when its members are read
            if member.problem is not None:
                continue
            paths.append(member.name)
            if member.modified_us is not None:
                modified[member.name] = member.modified_us
            if _is_of_a_bundle(member.name):
                text = read_bundle_file(member.path)
                if text is not None:
                    texts[member.name] = text
            elif may_be_host_map(member.name):
                aliases = aliases_in([(member.path, member.name)], catalogue, aliases)
    return Naming(
        paths,
        options.tzinfo,
        patterns=options.host_from,
        aliases=aliases,
        texts=texts,
        modified=modified,
        origin=origin,
        where=path_text(shown),
    )
