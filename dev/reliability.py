"""Writes the tables in docs/en/reliability.md and docs/zh_CN/reliability.md, from tests/seeded_bugs.

    PYTHONPATH=tests:. python dev/reliability.py

`make generate` does this. The words around the tables are in the pages themselves.
"""

# ruff: noqa: RUF001 (Chinese commas are meant)

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from seeded_bugs import ANOTHER_END, BUGS, CLASSES, Bug, BugClass, Level
from simulator import invariants

TOP = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- {}: written by make generate from tests/seeded_bugs -->\n", "<!-- end of {} -->\n"


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


ENGLISH = Words(
    ("class", "real cases", "what we put in", "caught by", "level"),
    ("what we put in", "caught by", "level"),
    {number: one.title for number, one in CLASSES.items()},
    {number: one.absent for number, one in CLASSES.items() if one.absent},
    {level: str(level) for level in Level},
    "another end than without it",
    "{bugs} bugs for {caught} of {classes} classes; {invariants} invariants and {tests} tests catch them.\n"
    "{requests} invariants are checked at each request, {changes} at each change, {rest} once at rest.\n",
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
)

PAGES = {
    TOP / "docs" / "en" / "reliability.md": ENGLISH,
    TOP / "docs" / "zh_CN" / "reliability.md": CHINESE,
}


def rewritten(text: str, words: Words) -> str:
    """The page with its tables as they should be."""
    for name, table in (("classes", _classes(words)), ("others", _others(words)), ("count", _count(words))):
        begin, end = BEGIN.format(name), END.format(name)
        before, found, rest = text.partition(begin)
        assert found, f"the page has no place for {name}: {begin}"
        _, found, after = rest.partition(end)
        assert found, f"the page has no {end}"
        text = f"{before}{begin}\n{table}\n{end}{after}"
    return text


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
    return f"[`{test.rpartition('::')[2]}`](../../{file})" if test else f"`{name}`"


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
