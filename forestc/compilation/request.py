"""Checks the options of `compile` before the model is read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from forestc.backends.base import Gives
from forestc.backends.c.choice import KITS, check
from forestc.backends.c.options import COptions
from forestc.backends.engine.files import engine_of
from forestc.backends.table import TARGETS, core_of, cores, gives, lowered
from forestc.backends.table import need_tools as need_tools_of_targets
from forestc.compilation.layouts import is_measured
from forestc.compilation.layouts import need_tools as need_tools_of_c
from forestc.compilation.synthesis import known_device, need_tools
from forestc.costs.boards import LIBERTY, stands_for
from forestc.costs.devices import DEVICES, family_of
from forestc.costs.firmware import CPU_COSTS
from forestc.costs.fitted import fitted
from forestc.engine.capacity import Capacity
from forestc.errors import OptionError, known_names, opt
from forestc.fields.amounts import tolerance_of
from forestc.fields.options import AN_OBJECT, Flag, grouped, recorded
from forestc.forest.outputs import LABEL, OUTPUTS, Words
from forestc.lowering.timing import DEFAULT_FAMILY
from forestc.lowering.trees import LoweringOptions
from forestc.netlist.ports import Clocking
from forestc.options.compile import CompileOptions
from forestc.passes import passes_from
from forestc.passes.base import Pass, print_pass
from forestc.rows.given import share_of
from forestc.rows.table import label_columns
from forestc.search.levels import SEARCHING, check_search, effort_of, level_number
from forestc.search.portfolio import Stop


@dataclass(frozen=True)
class Request:
    """The checked options of `compile`."""

    options: CompileOptions  # as given, with passes as text and the level as a number
    level: int | None
    named: tuple[Pass, ...] | None  # passes that the user named, or None
    stop: Stop | None  # limits the search for smaller designs
    targets: tuple[str, ...]

    @staticmethod
    def of(options: CompileOptions) -> Request:
        """Checks the options. Raises OptionError for invalid options, and MissingToolError if a tool for the device is
        not installed."""
        options = replace(
            options,
            device=None if options.device is None else known_device(options.device),
            cpu=stands_for(options.cpu, "cpu", CPU_COSTS) if options.cpu else "",
            tolerance=tolerance_of(options.tolerance),
        )
        level, passes = level_number(options.level), options.passes
        for name, value, kind in grouped(options):
            if not isinstance(value, kind):
                raise OptionError(
                    f"{value!r} are no options of a {name}",
                    where=getattr(opt, name),
                    do=f"give forestc.{kind.__name__}, empty for the defaults",
                )
        given = {name: getattr(options, name) for name in ("tolerance", "effort", "keep")}
        check_search(level, passes, **given, sure=options.sure or None)
        if options.sure and options.held_out is None:
            do = f"add {opt.held_out:FILE}, or remove {opt.sure}"
            raise OptionError("a loss is shown on rows that the model was not trained on", where=opt.sure, do=do)
        stop = effort_of(options.effort)
        named = None if passes is None else tuple(passes_from(passes, options.scores, options.seed))
        targets = _names(options.targets)
        if options.cpu and not gives(targets, Gives.HEADER):
            raise OptionError(
                "a processor and budgets are those of C", where=opt.target, do=f"add the target c, or remove {opt.cpu}"
            )
        _check_targets(targets, options)
        one_form = replace(
            options,
            level=level,
            passes=passes if passes is None or isinstance(passes, str) else ",".join(map(print_pass, passes)),
            targets=targets,
            classes=tuple(options.classes),
            clock_mhz=None if options.clock_mhz is None else float(options.clock_mhz),
        )
        check(one_form)
        if gives(targets, Gives.HEADER) and is_measured(one_form):
            need_tools_of_c(one_form)
        need_tools_of_targets(targets, one_form)
        request = Request(one_form, level, named, stop, targets)
        request._check_hardware()
        request._check_outputs()
        return request

    @property
    def tolerance(self) -> float | None:
        """The accuracy that may be lost, as a share; None if no tolerance was given."""
        return tolerance_of(self.options.tolerance)

    def _check_hardware(self) -> None:
        given = self.options
        if given.device is not None:
            if given.device.startswith(LIBERTY):
                do = f"compile without it, then forestc synth {given.out} --device {given.device}"
                raise OptionError("a library of cells is for synth alone", where=opt.device, do=do)
            if not cores(self.targets):
                raise OptionError("a device needs the core", where=opt.device, do=_ADD_CORE)
            if not given.no_synth:
                need_tools(given.device, given.native, core_of(self.targets))
        if given.clock_mhz is not None:
            if given.device is None:
                raise OptionError("a clock needs a device", where=opt.clock, do=f"give {opt.device:DEVICE}, too")
            if given.latency and self.has_estimate:
                what = f"for {given.device} the clock chooses the latency"
                raise OptionError(what, where=opt.clock, do=f"leave {opt.latency} out, or give no clock")
            if not given.latency and not self.has_estimate:
                what = f"no estimate of {given.device}'s clock can choose the latency"
                raise OptionError(
                    what, where=opt.clock, do=f"give {opt.latency:3} or so; the clock goes into the constraints"
                )
            if not 0 < given.clock_mhz < math.inf:
                raise OptionError(f"{given.clock_mhz:g} MHz", where=opt.clock, do="give a number of megahertz above 0")
        for where in [opt.reset] * (given.reset != "none") + [opt.enable] * given.enable:
            self._check_clocking(where)
        self.lowering  # noqa: B018  rejects an invalid latency or outputs

    def _check_outputs(self) -> None:
        """Raises OptionError for targets and passes that do not keep the outputs."""
        given, level = self.options, self.level
        made = ((name, TARGETS[name]) for name in self.targets)  # C finds the second class, other programs do not.
        without = [name for name, target in made if not target.lowered and target.gives is not Gives.HEADER]
        if "second" in self.words.kinds and without:
            what = f"{without[0]} gives no second class"
            raise OptionError(what, where=opt.outputs, do=f"leave {without[0]} out of {opt.target}")
        if self.words.read is None:
            return
        if given.held_out is not None or (self.named is None and level in SEARCHING):
            what = f"-O{level}" if given.held_out is None else f"{opt.held_out}"
            do = f"use -O0 or -O1, without {opt.held_out}"
            raise OptionError(f"{what} judges what a model decides, not its {given.outputs}", where=opt.outputs, do=do)
        same = ("simplify", "share-thresholds", "quantize-inputs", "round-leaves")
        others = [step.name for step in self.named or () if step.name not in same]
        if given.outputs == "leaves" and others:
            what = f"{others[0]} makes other trees, in which the model's leaves have no place"
            raise OptionError(what, where=opt.outputs, do=f"leave {others[0]} out of {opt.passes}")

    @property
    def words(self) -> Words:
        """The words that the design returns; with outputs=auto those of a label."""
        return OUTPUTS.get(self.options.outputs, LABEL)

    def _check_clocking(self, where: str) -> None:
        """Raises OptionError unless all targets of hardware have registers. where: the option that needs them."""
        without = [name for name in self.targets if TARGETS[name].lowered and not TARGETS[name].registers]
        if without:
            do = f"remove it, or leave {without[0]} out of {opt.target}"
            raise OptionError(f"{without[0]} has no such port", where=where, do=do)
        if not any(TARGETS[name].registers for name in self.targets):
            add = " or ".join(name for name, target in TARGETS.items() if target.registers)
            raise OptionError("no target has such a port", where=where, do=f"add the target {add}")
        if not self.options.latency and (self.options.clock_mhz is None or not self.has_estimate):
            do = f"give {opt.latency:N} or {opt.clock:MHZ}, or remove it"
            raise OptionError("a combinational core has no registers", where=where, do=do)

    @property
    def has_hardware(self) -> bool:
        """True if a target needs the netlist; C and engines do not."""
        return lowered(self.targets)

    @property
    def has_estimate(self) -> bool:
        """True unless the clock of the device can't be estimated, as of a part of a vendor's tool, `vivado:PART`."""
        device = DEVICES.get(self.options.device or "")
        return self.options.device is None or (device is not None and device.family.timed_on in fitted().paths_ns)

    @property
    def lowering(self) -> LoweringOptions:
        given = self.options
        clocking = Clocking(given.reset, given.enable)
        return LoweringOptions(given.latency, given.outputs, family_of(given.device or ""), clocking)

    def of_folder(self, c: COptions, lowering: LoweringOptions, capacity: Capacity | None) -> dict[str, Any]:
        """Returns the options on which the folder's files depend, for the manifest.
        c, lowering: options as they were chosen for this forest.
        capacity: the size of the engine, if one is written."""
        given = self.options
        options: dict[str, Any] = {"targets": sorted(set(self.targets)), "latency": lowering.latency}
        options["outputs"] = given.outputs
        if given.reset != "none":
            options["reset"] = given.reset
        if given.enable:
            options["enable"] = True
        if lowering.family != DEFAULT_FAMILY:
            options["target"] = lowering.family
        options["c"] = c.c_record()
        options |= {name: vars(value) for name, value, _ in grouped(given)}
        if given.device is not None:
            options["device"] = given.device
        if given.clock_mhz is not None:
            options["clock_mhz"] = given.clock_mhz
        if capacity is not None:
            options["engine"] = asdict(capacity)
        return options

    @cached_property
    def flags(self) -> tuple[Flag, ...]:
        """The recorded options, in the order of a command line."""
        held_out = self.options.held_out
        own: dict[str, Any] = {"label": _label(self.options.label, self.options.rows)}
        if isinstance(held_out, str | int | float) and (share := share_of(held_out)) is not None:
            own["held_out"] = share
        if isinstance(types := self.options.ap_types, Mapping):
            own["ap_types"] = ",".join(f"{role}={name}" for role, name in types.items())
        return tuple(flag._replace(value=own.get(flag.key, flag.value)) for flag in recorded(self.options))

    def as_dict(self) -> dict[str, Any]:
        return {flag.key: flag.value for flag in self.flags}


_ADD_CORE = f"add the target {' or '.join(name for name, target in TARGETS.items() if target.core is not None)}"


def _named(*wanted: Gives) -> str:
    """Returns the names of the targets that give one of these."""
    return " or ".join(name for name, target in TARGETS.items() if target.gives in wanted)


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(name.strip() for name in given.split(",") if name.strip()) if isinstance(given, str) else tuple(given)


def _check_targets(targets: tuple[str, ...], given: CompileOptions) -> None:
    if not targets:
        raise OptionError("no target is given", where=opt.target, do=known_names("", TARGETS))
    for target in targets:
        if target not in TARGETS:
            project = f"for its C give {opt.target:c} {opt.c_project:{target}}; " if target in KITS else ""
            raise OptionError(f"unknown target {target!r}", where=opt.target, do=project + known_names(target, TARGETS))
        needed = TARGETS[target].beside
        if needed is not None and cores(targets) and not gives(targets, needed):
            add = _named(needed)
            do = f"add the target {add}, whose module other designs instantiate as a component, or leave {target} out"
            raise OptionError(f"{target} has files of {add} alone", where=opt.target, do=do)
    if given.engine is not None and not gives(targets, Gives.WALKERS):
        do = f"add the target {_named(Gives.WALKERS)}"
        raise OptionError("an engine is given, and not wanted", where=opt.engine, do=do)
    if given.engine is not None:
        engine_of(given.engine)  # refuses a bad engine before the model is read
    if cores(targets):
        fitted()  # refuses a damaged table of costs
    if given.stream is not None and not cores(targets):
        raise OptionError("a stream wrapper needs the core", where=opt.stream, do=_ADD_CORE)


def _label(label: object, rows: object) -> str | list[str] | None:
    if label is None:
        return None
    columns = label_columns(label, rows)
    if columns is None:
        return AN_OBJECT
    return columns if isinstance(columns, str) else [str(name) for name in columns]
