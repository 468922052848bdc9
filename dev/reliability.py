"""Writes the tables in docs/en/reliability.md and docs/zh_CN/reliability.md, from the simulator and its bugs.

    PYTHONPATH=tests:. python dev/reliability.py

`make generate` does this. The words around the tables are in the pages themselves.
"""

# ruff: noqa: RUF001 (Chinese commas are meant)

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from seeded_bugs import ANOTHER_END, BUGS, CLASSES, Bug, BugClass, Level
from simulator import invariants
from simulator.rules import BY_GROUPS, BY_THE_END, NOT_BUILT, RULES, invariants_of
from simulator.sweeps import GROUPS
from simulator.workloads import ALL

TOP = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- {}: written by make generate -->\n", "<!-- end of {} -->\n"


@dataclass(frozen=True)
class Words:
    """Of one language."""

    columns: tuple[str, ...]
    columns_of_others: tuple[str, ...]
    titles: dict[int, str]
    absent: dict[int, str]
    levels: dict[Level, str]
    another_end: str
    counted: str
    columns_of_rules: tuple[str, ...]
    rules: dict[int, str]
    by_the_end: str
    by_groups: str
    not_built: str
    columns_of_groups: tuple[str, ...]
    groups: dict[str, str]
    all_lives: str


ENGLISH = Words(
    ("class", "real cases", "what we put in", "caught by", "level"),
    ("what we put in", "caught by", "level"),
    {number: one.title for number, one in CLASSES.items()},
    {number: one.absent for number, one in CLASSES.items() if one.absent},
    {level: str(level) for level in Level},
    "another end than without it",
    "{bugs} bugs for {caught} of {classes} classes; {invariants} invariants and {tests} tests catch them.\n"
    "{requests} invariants are checked at each request, {changes} at each change, {rest} once at rest.\n",
    ("rule", "checked by"),
    RULES,
    "the end of every life",
    "{}, with all other rules",
    "nothing yet: it is not built",
    ("group", "what goes wrong", "in how many lives"),
    {name: (group.plans.__doc__ or "").partition("\n")[0] for name, group in GROUPS.items()},
    "all {}",
)

CHINESE = Words(
    ("类别", "真实案例", "植入的缺陷", "由谁发现", "层级"),
    ("植入的缺陷", "由谁发现", "层级"),
    {
        1: "缓存过期，重复创建",
        2: "watch 滞后时预期超时，多建 Pod",
        3: "作业删除重建后沿用旧作业的预期",
        4: "随机名称加缓存过期，先重复后被全部删除",
        5: "名称复用而不核对 UID",
        6: "重启后读到旧数据，删除了仍在使用的对象",
        7: "两次写入之间崩溃，之后无人修复",
        8: "崩溃后把进行中当作已完成",
        9: "错过的事件永远补不回来",
        10: "写冲突使 status 丢失",
        11: "已结束的 Pod 在计数前被回收，作业重新运行",
        12: "已结束的作业重新创建子对象",
        13: "finalizer 永远不被移除",
        14: "尚未计数完毕就宣布结束",
        15: "忽略 410 Gone 或反复请求",
        16: "被自己写的 status 唤醒，空转不止",
        17: "事件数量没有上限",
        18: "名称超过 63 个字符或不合 DNS 规则，无休止重试",
        19: "两个命名空间里的同名作业相互混淆",
        20: "一个意料之外的对象使整个 Operator 停摆",
        21: "删除的字段没有传到子对象",
        22: "缺少 finalizers 子资源的权限，blockOwnerDeletion 需要它",
        23: "被配额或准入策略拒绝后 status 为空",
        24: "定时器丢失或时钟有误",
        25: "两个主实例同时行动",
        26: "status 来回跳动",
        27: "缓存集群里所有的 Pod，直到内存耗尽",
        28: "看不到 PodGroup 的状态，Pod 永远不被创建",
        29: "对不存在的对象反复删除",
        30: "改动别人的对象或 finalizer",
        31: "创建成功却没有记住，再次创建或泄漏",
        32: "Pod 路径上的 webhook 超时，大部分创建失败",
    },
    {
        28: "目前不创建 PodGroup，要求成组调度的作业会被告知尚不支持",
        32: "我们没有 webhook；别人的 webhook 拒绝 Pod 时作业如何，见第 23 类",
    },
    {Level.TABLE: "表格测试", Level.SIMULATION: "模拟", Level.SERVER: "API Server"},
    "结局与没有缺陷时不同",
    "共 {bugs} 个缺陷，覆盖 {classes} 类中的 {caught} 类，由 {invariants} 条不变式和 {tests} 个测试发现。\n"
    "每个请求检查 {requests} 条不变式，每次变化检查 {changes} 条，一切静止之后再检查 {rest} 条。\n",
    ("规则", "由谁检查"),
    {
        1: "每个角色的每个序号至多有一个存活的 Pod，名称由作业、角色和序号决定。",
        2: "不为已不存在、正在删除、已暂停或已结束的作业创建任何东西；来得太晚的很快就会消失。",
        3: "对子对象的每次修改都写明所指的 UID；不属于作业的从不触碰。",
        4: "`Completed` 和 `Failed` 是终态；开始和结束时间只写一次。",
        5: "`observedGeneration` 从不减小；condition 的时间只随其状态改变。",
        6: "在一次尝试之内，已结束的始终计在内；最后每个 Pod 都计到。",
        7: "失败的尝试无论在何时崩溃都只计一次，并且不超过上限。",
        8: "同一次尝试的所有 Pod 得到相同的对端列表：每个序号一次，并且能在那里找到。",
        9: "每次尝试都先创建 server，再创建 worker。",
        10: "成组调度的作业有一个大小正确、先于 Pod 创建的 PodGroup。",
        11: "静止之后符合 `cleanPodPolicy`。",
        12: "弹性作业保持在上下限之内，一次只调整一次大小，从最大的序号减起。",
        13: "每个请求都在作业的命名空间之内。",
        14: "静止之后不发任何请求；不写已有的内容，不重复请求。",
        15: "N 个 Pod 的作业至多用 2N + 15 个请求，每清理一个子对象再加一个。",
        16: "事件少而短。",
        17: "status 只按所读到的版本写入；别人写的内容原样保留。",
        18: "两个 manager 同时行动时，以上全部成立。",
        19: "时钟有误时，没有什么会提前发生，也不会忘记任何期限。",
        20: "我们的任何东西都不会妨碍删除。",
        21: "服务器接受的任何对象都不会引发异常。",
        22: "status、事件、名称和日志中没有机密。",
        23: "SampleJob 至多破坏一次，并且只在其根目录之下。",
        24: "子对象的标签只是提示，以属主的 UID 和名称为准。",
        25: "故障停止后，在少数几轮内达到目标，并且很快告知。",
        26: "结局与没有故障的同一生相同。",
        27: "watch 从未显示的变化，在下一次 list 之后不留影响。",
        28: "被拒绝的请求越来越少地重试，并且会说明。",
        29: "撤回的修改不留痕迹。",
    },
    "每一生的结局",
    "{}，连同其他所有规则",
    "尚无：这部分还没有实现",
    ("组", "出什么错", "多少种一生"),
    {
        "crashes": "在每次写入之前、写入后未得到答复时、写入之后崩溃。",
        "late-watches": "每种对象的每次变化都迟到，其后的变化也跟着迟到。",
        "stale-lists": "每次写入之后崩溃，下一个进程的第一次 list 来自过去。",
        "broken-watches": "在每种对象的每次变化之前，watch 以各种方式中断。",
        "refused-writes": "每次写入都以各种错误被拒绝一次，或者已经生效而只丢失答复。",
        "lasting-refusals": "同一种动作和对象的所有写入被拒绝数分钟，期限所依赖的写入除外。",
        "second-leader": "两个 manager 在整个一生中同时行动。",
        "edits": "在存储的每次变化时，有人对作业或其所有物做些什么。",
        "clocks": "manager 所在机器的时钟被拨动一小时，也在 manager 重新启动时拨动。",
        "pairs": "同一生中的两个故障：抽样，因为全部组合有一百万种。",
        "second-leader-and-more": "两个 manager 在整个一生中同时行动，其中一个还会遇到别的故障。",
    },
    "全部 {} 种",
)

PAGES = {
    TOP / "docs" / "en" / "reliability.md": ENGLISH,
    TOP / "docs" / "zh_CN" / "reliability.md": CHINESE,
}


def rewritten(text: str, words: Words) -> str:
    """The page with its tables as they should be."""
    tables = (_groups, _rules, _classes, _others, _count)
    for name, table in ((table.__name__.strip("_"), table(words)) for table in tables):
        begin, end = BEGIN.format(name), END.format(name)
        before, found, rest = text.partition(begin)
        assert found, f"the page has no place for {name}: {begin}"
        _, found, after = rest.partition(end)
        assert found, f"the page has no {end}"
        text = f"{before}{begin}\n{table}\n{end}{after}"
    return text


def _groups(words: Words) -> str:
    lives = {name: len(group.lives) for name, group in GROUPS.items()}
    told = {name: words.all_lives.format(n) if n == len(ALL) else str(n) for name, n in lives.items()}
    return _table(words.columns_of_groups, ((f"`{name}`", words.groups[name], told[name]) for name in GROUPS))


def _rules(words: Words) -> str:
    rows = ((f"{number}. {text}", _checkers(number, words)) for number, text in words.rules.items())
    return _table(words.columns_of_rules, rows)


def _checkers(rule: int, words: Words) -> str:
    if rule in NOT_BUILT:
        return words.not_built
    if rule in BY_THE_END:
        return words.by_the_end
    names = ", ".join(f"`{name}`" for name in BY_GROUPS.get(rule, invariants_of(rule)))
    return words.by_groups.format(names) if rule in BY_GROUPS else names


def _classes(words: Words) -> str:
    return _table(words.columns, (row for one in CLASSES.values() for row in _rows(one, words)))


def _rows(one: BugClass, words: Words) -> Iterable[tuple[str, ...]]:
    """The class stands in the first of its rows."""
    title = f"{one.number}. {words.titles[one.number]}"
    cases = ", ".join(f"[{name}]({link})" for name, link in one.links.items())
    if one.absent:
        yield title, cases, words.absent[one.number], "", ""
    for bug in BUGS.values():
        if one.number in bug.classes:
            yield title, cases, *_cells(bug, words)
            title = cases = ""


def _others(words: Words) -> str:
    return _table(words.columns_of_others, (_cells(bug, words) for bug in BUGS.values() if not bug.classes))


def _cells(bug: Bug, words: Words) -> tuple[str, str, str]:
    catchers = [words.another_end if one == ANOTHER_END else _catcher(one) for one in bug.caught_by]
    return f"`{bug.name}`", ", ".join(catchers), words.levels[bug.level]


def _catcher(name: str) -> str:
    """An invariant, or a test with its file."""
    file, _, test = name.partition("::")
    return f"[`{test.replace('::', '.')}`](../../{file})" if test else f"`{name}`"


def _count(words: Words) -> str:
    catchers = {one for bug in BUGS.values() for one in bug.caught_by}
    tests = {one for one in catchers if "::" in one}
    return words.counted.format(
        bugs=len(BUGS),
        classes=len(CLASSES),
        caught=len({number for bug in BUGS.values() for number in bug.classes}),
        invariants=len(catchers - tests - {ANOTHER_END}),
        tests=len(tests),
        requests=len(invariants.ALL.of_a_request) + len(invariants.ALL.of_an_answer),
        changes=len(invariants.ALL.of_a_change),
        rest=len(invariants.ALL.at_rest),
    )


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    for page, words in PAGES.items():
        page.write_text(rewritten(page.read_text(encoding="utf-8"), words), encoding="utf-8")


if __name__ == "__main__":
    main()
