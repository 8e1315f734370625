"""The page's one style sheet: calm, legible, light or dark as the reader's system says, and printable."""

STYLE = """\
:root { color-scheme: light dark; --back: #fbfaf8; --card: #ffffff; --ink: #1d2126; --soft: #5d6670; --line: #e2dfd9;
  --good: #1b6b45; --good-back: #e5f3ea; --bad: #9d2f22; --bad-back: #fbe9e6; --busy: #235a9c; --busy-back: #e6eef9;
  --calm-back: #efede8; --empty: #f4f2ee; }
@media (prefers-color-scheme: dark) { :root { --back: #15181c; --card: #1c2026; --ink: #e4e6e9; --soft: #9aa4af;
  --line: #2e343c; --good: #7fd1a4; --good-back: #17301f; --bad: #f2a097; --bad-back: #3a1d1a; --busy: #93bdf3;
  --busy-back: #1a2a40; --calm-back: #262b32; --empty: #181c21; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
header { display: flex; gap: 1rem; align-items: baseline; padding: .9rem 1.5rem; background: var(--card);
  border-bottom: 1px solid var(--line); }
.mark { font-weight: 650; font-size: 1.05rem; color: var(--ink); text-decoration: none; letter-spacing: .01em; }
.who, .renew { color: var(--soft); font-size: .87rem; }
.renew { margin-left: auto; }
main { max-width: 78rem; margin: 0 auto; padding: 1.2rem 1.5rem 2rem; }
footer { color: var(--soft); font-size: .85rem; padding: 0 1.5rem 2rem; max-width: 78rem; margin: 0 auto; }
h1 { font-size: 1.35rem; line-height: 1.3; margin: .6rem 0 .2rem; font-weight: 600; overflow-wrap: anywhere; }
h2 { font-size: 1.02rem; margin: 2rem 0 .6rem; font-weight: 600; }
h3 { font-size: .92rem; margin: 1rem 0 .4rem; font-weight: 600;
  font-family: ui-monospace, "DejaVu Sans Mono", monospace; }
p { margin: .3rem 0; overflow-wrap: anywhere; }
a { color: var(--busy); }
code, .mono { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .88em; }
.soft { color: var(--soft); }
.badge { display: inline-block; padding: .05rem .55rem; border-radius: 1rem; font-size: .82rem; font-weight: 600;
  white-space: nowrap; background: var(--calm-back); color: var(--soft); }
.badge.good { background: var(--good-back); color: var(--good); }
.badge.bad { background: var(--bad-back); color: var(--bad); }
.badge.busy { background: var(--busy-back); color: var(--busy); }
.tiles { display: flex; flex-wrap: wrap; gap: .7rem; margin: 1rem 0; }
.tiles div { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .5rem 1rem;
  min-width: 6.5rem; display: flex; flex-direction: column-reverse; }
.tiles dd { margin: 0; font-size: 1.45rem; font-weight: 600; font-variant-numeric: tabular-nums; line-height: 1.3; }
.tiles dt { color: var(--soft); font-size: .84rem; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem; margin: .5rem 0; }
.facts dt { color: var(--soft); } .facts dd { margin: 0; overflow-wrap: anywhere; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; overflow: hidden;
  overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; font-size: .82rem; color: var(--soft); }
td, th { padding: .4rem .8rem; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
tr:last-child td { border-bottom: 0; }
td.n, th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.id { white-space: nowrap; }
tr.found td { background: var(--good-back); }
ul { margin: .3rem 0; padding-left: 1.2rem; } li { overflow-wrap: anywhere; }
.bar { display: block; width: 9rem; margin-top: .5rem; height: .55rem; border-radius: .3rem;
  background: var(--calm-back); }
.bar rect { fill: var(--busy); }
.diff { table-layout: fixed; font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .82rem;
  line-height: 1.5; }
.diff td { border: 0; padding: 0 .6rem; white-space: pre-wrap; }
.diff col.k { width: 3.4rem; }
.diff td.k { text-align: right; color: var(--soft); user-select: none; }
.diff td.cut { background: var(--bad-back); } .diff td.add { background: var(--good-back); }
.diff td.none { background: var(--empty); }
.diff tr.gap td { color: var(--soft); background: var(--calm-back); padding: .1rem .6rem; }
.diff ins, .diff del { text-decoration: none; font-weight: 700; }
.diff del { color: var(--bad); } .diff ins { color: var(--good); }
@media (max-width: 50rem) { .facts { grid-template-columns: 1fr; } .facts dd { margin-bottom: .4rem; }
  main, header { padding-left: .9rem; padding-right: .9rem; } }
@media print { header .renew { display: none; } body { background: #fff; } }
"""
