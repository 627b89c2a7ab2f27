"""`mir-opt`: reads a module, runs passes over it, prints it.

xDSL's driver with `.mir` in and out, and diagnostics.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr, ModuleOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.targets import get_all_targets
from xdsl.utils.exceptions import ShrinkException
from xdsl.xdsl_opt_main import xDSLOptMain

from ..frontends.model_file import MODEL_FORMATS
from ..passes.instruments import Instrument, Timing, VerifyEach
from ..passes.pass_info import EXPLAINED, explanation
from ..passes.registry import list_passes, pass_factories
from ..support.deep_stack import in_deep_stack
from ..support.diagnostics import Diagnostic, MirError, Sources, file_loc, render_all
from ..support.source_text import text_bytes
from ..support.trace import listening, to_stderr
from .arguments import add_arguments
from .errors import INVALID, OK, InternalError, UsageError, did_you_mean, guarded
from .expected import compare
from .extending import list_extensions, load_all
from .modules import FORMATS, format_of, model_source, parse_chunk, register_dialects, register_loaded
from .pipeline import observing, read_pipeline, run_pass, run_passes, verify_result
from .sources import PACKAGE, Chunk, Source, check_file, extension, read_source
from .targets import NATIVE, TARGETS, MlirStyle, has_mir_text, print_mir, print_mlir
from .timing_out import timing_out

if TYPE_CHECKING:
    from ..lowering.pipeline import Options
    from ..passes.print_ir import DumpIR

# The target that is not named: the format of the input.
AS_INPUT = "as-input"


def option_parser() -> argparse.ArgumentParser:
    """Returns the options of `mir-opt`, for what shows or completes them."""
    parser = argparse.ArgumentParser("mir-opt")
    add_arguments(parser, [*get_all_targets(), *TARGETS, AS_INPUT], AS_INPUT)
    return parser


class MirOptMain(xDSLOptMain):
    """xDSL's driver, extended.

    Packages that extend mirstack are found by `passes.extensions.packages`: xDSL's own way costs a tenth of the start-up.
    """

    passes: tuple[ModulePass, ...]
    front_end: str
    exit_code: int = OK
    dump: DumpIR | None = None

    def register_all_dialects(self) -> None:
        register_dialects(self.ctx)

    def register_all_frontends(self) -> None:
        def parse_stream(name: str, stream: IO[bytes]) -> ModuleOp:
            source = Source("<stream>", stream.read().decode(), Path.cwd())
            return parse_chunk(source, Chunk(source.text), name, self.ctx)

        self.available_frontends = {name: partial(parse_stream, name) for name in FORMATS}

    def register_all_passes(self) -> None:
        self.available_passes = dict(pass_factories())

    def register_all_targets(self) -> None:
        def as_input(module: ModuleOp, stream: IO[str]) -> None:
            stream.write(self.print_module(module))

        self.available_targets = {**get_all_targets(), **dict.fromkeys([AS_INPUT, *TARGETS], as_input)}

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        add_arguments(arg_parser, self.available_targets, AS_INPUT)

    def setup_pipeline(self) -> None:
        self._load_extensions()
        self.passes = read_pipeline(self.args.passes, self.available_passes)
        self.pipeline = PassPipeline(self.passes)
        self._check_topics()

    def _load_extensions(self) -> None:
        """Loads packages and `--load`. Raises MirError for what cannot be loaded."""
        load_all(self.args.load)
        self.register_all_passes()
        register_loaded(self.ctx)

    def run(self) -> None:
        """Carries out the command line; `exit_code` tells how it went."""
        self.exit_code = self._run()

    def _run(self) -> int:
        if self.args.list_passes:
            print("\n".join(list_passes()))
            return OK
        if self.args.list_extensions:
            print("\n".join(list_extensions()))
            return OK
        if extension(self.args.input_file) == PACKAGE:
            return self._describe_package(self.args.input_file)
        if self.args.dot and self.args.target != AS_INPUT:
            raise UsageError(f"--dot prints the graph instead of the module: leave out -t {self.args.target}")
        self.front_end = format_of(self.args.input_file, self.args.frontend)
        if self.front_end in MODEL_FORMATS:
            model_source(self.args.input_file, self.front_end, {})
            source = Source(self.args.input_file, "", Path(self.args.input_file).parent)
        else:
            source = read_source(self.args.input_file)
        outputs: list[str] = []
        failed = False
        for chunk in source.chunks(self.args.split_input_file):
            sources = Sources()
            sources.add(source.name, chunk.text, chunk.first_line)
            with sources.reading():
                output, diagnostics = self._compile(source, chunk)
                diagnostics = [*sources.warnings, *diagnostics]
                if self.args.verify_diagnostics:
                    diagnostics = compare(chunk.text, source.name, chunk.first_line, diagnostics)
                if diagnostics:
                    sys.stdout.flush()
                    print(render_all(diagnostics, sources), file=sys.stderr)
            failed = failed or any(diagnostic.severity == "error" for diagnostic in diagnostics)
            if output is not None:
                outputs.append(output)
                if self.args.output_file is None:
                    sys.stdout.write(("// -----\n" if len(outputs) > 1 else "") + output)
        if self.args.shrink:
            print("Failure, can't shrink")
            return INVALID
        if self.args.output_file is not None and not failed:
            self._write_file("// -----\n".join(outputs))
        return INVALID if failed else OK

    def _describe_package(self, path: str) -> int:
        """Prints what a package holds: it is compiled already, so that no pass runs."""
        from ..lowering.driver.artifacts.package import describe, read_package

        if self.args.passes or self.args.target not in ("mir", AS_INPUT):
            raise UsageError(f"{path}: a package is compiled already: mir-opt only shows what it holds")
        check_file(path)
        try:
            text = describe(read_package(Path(path)))
        except MirError as error:
            print(render_all(error.diagnostics, Sources.current()), file=sys.stderr)
            return INVALID
        if self.args.output_file is None:
            sys.stdout.write(text)
        else:
            self._write_file(text)
        return OK

    def print_module(
        self, module: ModuleOp, target: str | None = None, instruments: Sequence[Instrument] = (), elide: bool = False
    ) -> str:
        """Returns the module in the format `target`, by default the one asked for on the command line.

        `instruments` observe the passes that lower it to LLVM. `elide`: in MLIR's form, large arrays are named instead of written out.
        """
        match target or self._target(module):
            case "dot":
                from .view.dot import dot_text

                return dot_text(module)
            case "mir":
                return print_mir(module)
            case "mlir":
                return print_mlir(module, replace(self._style(), elide=elide))
            case "llvm" | "asm" as native:
                from ..lowering.driver.build import assembly_text, llvm_text

                emit = llvm_text if native == "llvm" else assembly_text
                return emit(module, self._options(module), apply=partial(run_pass, instruments))
            case _:
                return super().output_resulting_program(module)

    def _options(self, module: ModuleOp) -> Options:
        """Returns the options with which `mirstack.compile` would lower the module."""
        from ..lowering.driver.entry import default_entry, functions_of
        from ..lowering.driver.processor import with_processor
        from ..lowering.externs import names_of
        from ..lowering.pipeline import Options

        args = self.args
        options = Options(
            entry=default_entry(functions_of(module)),
            opt_level=args.opt_level,
            cpu=args.mcpu,
            caches=args.caches,
            allow_extern=names_of(args.allow_extern),
            strict_math=args.strict_math,
        )
        return with_processor(options, module)

    def _style(self) -> MlirStyle:
        return MlirStyle(
            self.args.print_op_generic,
            self.args.print_no_properties,
            self.args.print_debuginfo,
            self.args.syntax_highlight,
        )

    def _target(self, module: ModuleOp) -> str:
        """Returns the format to print.

        That is the given one; otherwise the input's as long as it can express the module; otherwise MLIR's form.
        """
        if self.args.dot:
            return "dot"
        if self.args.target != AS_INPUT:
            return self.args.target
        wants_mlir = self.args.print_op_generic or self.args.print_debuginfo or self.args.print_no_properties
        return "mir" if self.front_end != "mlir" and not wants_mlir and has_mir_text(module) else "mlir"

    def _compile(self, source: Source, chunk: Chunk) -> tuple[str | None, list[Diagnostic]]:
        """Returns a part of the input from text to text: the output, or None and what was wrong with it."""
        timing = Timing(self._show)
        try:
            with timing.stage("parse") as stage:
                module = self._parse(source, chunk)
            if self.args.timing:
                timing.measure(stage, module)
            if not self.args.disable_verify:
                with timing.stage("verify"):
                    verify_result(module, ())
                    from ..lowering.driver.source import check_functions

                    check_functions(module)
            if self.args.shape and self.front_end not in MODEL_FORMATS:
                from ..lowering.driver.entry import find_entry
                from ..passes.relay.functional.bind_shapes import bind_shapes

                bind_shapes(module, find_entry(module), self.args.shape)
            if self.args.check_rules:
                return self._check_rules(module, file_loc(source.name, chunk.first_line, 1))
            instruments = self._instruments(timing)
            checked = [*instruments, *self._checks()]
            with observing(checked), self._listening(), self._counting():
                run_passes(self.passes, self.ctx, module, checked)
                if self.passes and not (self.args.disable_verify or self.args.verify_each):
                    with timing.stage("verify"):
                        verify_result(module, self.passes)
                with timing.stage(f"print {self._target(module)}") as stage:
                    text = self._print_result(module, instruments)
            stage.bytes = len(text_bytes(text)) if self.args.timing else None
            return text, []
        except MirError as error:
            return None, list(error.diagnostics)
        finally:
            if self.args.timing:
                print(timing.report(), file=sys.stderr)

    def _check_rules(self, module: ModuleOp, file: LocationAttr) -> tuple[str | None, list[Diagnostic]]:
        """Returns what `--check-rules` prints: the findings, or all errors in the rules of a module."""
        from ..passes.rules.annex.check import check_module

        try:
            found, problems = check_module(module)
        except MirError as error:
            problems = [replace(d, location=file) if d.location == UNKNOWN_LOC else d for d in error.diagnostics]
            return None, problems
        return (None, problems) if problems else (f"{found}\n", [])

    def _parse(self, source: Source, chunk: Chunk) -> ModuleOp:
        try:
            if self.front_end in MODEL_FORMATS:
                return model_source(source.name, self.front_end, self.args.shape, self.args.custom).parse()
            return parse_chunk(source, chunk, self.front_end, self.ctx, not self.args.no_implicit_module)
        except MirError as error:
            if self.args.parsing_diagnostics:
                print(render_all(error.diagnostics, Sources.current()))
                error.diagnostics = ()
            raise
        except Exception as error:
            raise InternalError(f"reading {source.name}", error) from error

    def _print_result(self, module: ModuleOp, instruments: Sequence[Instrument]) -> str:
        try:
            return self.print_module(module, instruments=instruments)
        except MirError:
            raise
        except Exception as error:
            raise InternalError(f"printing as {self._target(module)}", error) from error

    def _show(self, module: ModuleOp, elide: bool = True) -> str:
        """Prints the module between passes: as `.mir` where it can be, unless MLIR's form was asked for."""
        target = self._target(module)
        is_mir = target == "mir" or (target in ("dot", *NATIVE) and has_mir_text(module))
        return self.print_module(module, "mir" if is_mir else "mlir", elide=elide)

    def _instruments(self, timing: Timing) -> list[Instrument]:
        instruments: list[Instrument] = []
        if self.args.timing:
            instruments.append(timing)
        instruments += self._printing()
        if self.args.verify_each:
            instruments.append(VerifyEach())
        return instruments

    def _checks(self) -> list[Instrument]:
        """Returns the instrument that interprets the module after each pass of `-p`."""
        if not self.args.check_each:
            return []
        from .check_each import CheckEach, interpret

        return [CheckEach(interpret, self.args.inputs, self.args.allow_unchecked)]

    def _printing(self) -> Iterator[Instrument]:
        """Yields the instruments that show the module."""
        args = self.args
        if not (
            args.print_ir_before_all
            or args.print_ir_after_all
            or args.print_ir_after_change
            or args.dump_ir is not None
        ):
            return
        from ..passes.print_ir import DumpIR, PrintAfterAll, PrintAfterChange, PrintBeforeAll

        if args.print_ir_before_all:
            yield PrintBeforeAll(self._show)
        if args.print_ir_after_all:
            yield PrintAfterAll(self._show)
        if args.print_ir_after_change:
            yield PrintAfterChange(self._show)
        if args.dump_ir is not None:
            # The parts of a file that is split go on in one folder.
            count = 0 if self.dump is None else self.dump.count
            self.dump = DumpIR(args.dump_ir, self.dump is None, partial(self._show, elide=False), count)
            yield self.dump

    @contextmanager
    def _listening(self) -> Generator[None]:
        """While inside, prints what `--trace` and `--explain` ask for to standard error."""
        with listening(self.args.trace, to_stderr), listening(map(explanation, self.args.explain), to_stderr):
            yield

    @contextmanager
    def _counting(self) -> Generator[None]:
        """With `--rule-stats`, tells afterwards what the rules did that ran inside."""
        if not self.args.rule_stats:
            yield
            return
        from ..passes.rules import counting, stats_table

        with counting() as stats:
            try:
                yield
            finally:
                print(stats_table(stats), file=sys.stderr)

    def _lowering(self) -> Iterator[ModulePass]:
        """Yields the passes by which `-t llvm` and `-t asm` lower a module."""
        if self.args.target in NATIVE:
            from ..lowering.pipeline import lowering_passes

            # The processor may be one that the program describes.
            yield from lowering_passes(replace(self._options(ModuleOp([])), cpu=None))

    def _check_topics(self) -> None:
        """Refuses topics of `--trace` and `--explain` that are not passes, have no output, or are not in `-p`."""
        running = dict.fromkeys(module_pass.name for module_pass in (*self.passes, *self._lowering()))
        known = self.available_passes
        those = f"those that run are {', '.join(running)}" if running else "none runs: give some by -p, or -t llvm"
        for topic in self.args.trace:
            if topic not in known:
                raise UsageError(
                    f"--trace: there is no pass '{topic}'{did_you_mean(topic, known)}"
                    f" ({those}; --list-passes names all)"
                )
        for topic in self.args.explain:
            if topic not in EXPLAINED:
                raise UsageError(
                    f"--explain: no pass '{topic}' tells what it leaves alone{did_you_mean(topic, EXPLAINED)}"
                    f" (known are {', '.join(EXPLAINED)})"
                )
        for option, topics in (("--trace", self.args.trace), ("--explain", self.args.explain)):
            for topic in topics:
                if topic not in running:
                    raise UsageError(f"{option} {topic}: the pass is not among those that run (-p {topic})")

    def _write_file(self, text: str) -> None:
        path = Path(self.args.output_file)
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code.

    0; 1 for diagnostics; 2 for a wrong command line; 70 for a bug of mirstack.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    # IR is made of many small objects that live long: collecting as often as Python does by default looks at all of them
    # again and again, for a third of the time on large modules.
    gc.set_threshold(200_000, 20, 100)

    def compile_all() -> int:
        sources = Sources()
        with sources.reading():
            try:
                driver = MirOptMain(args=arguments)
            except MirError as error:
                print(render_all(error.diagnostics, sources), file=sys.stderr)
                return INVALID
        with timing_out(driver.args.timing_out, "mir-opt"):
            driver.run()
        return driver.exit_code

    def body() -> int:
        try:
            return in_deep_stack(compile_all)
        except ShrinkException:
            print("Success, can shrink")
            return OK

    return guarded("mir-opt", body, debug="--debug" in arguments)


if __name__ == "__main__":
    sys.exit(main())
