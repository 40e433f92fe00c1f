// The style sheets of the page and of its charts. Series colours are told apart with the common kinds of
// colour blindness, and keep a contrast of 3 to 1 with their ground in both schemes.
#pragma once

namespace tilewright::lab {

inline constexpr const char* kReportColours = R"css(
:root { color-scheme: light dark; --ground:#fbfbfa; --card:#ffffff; --ink:#1c1d1f; --muted:#63666b; --grid:#e4e5e7;
  --edge:#d9dadd; --good:#1a7f45; --warn:#9a6700; --bad:#c4314b;
  --s0:#6f747c; --s1:#2a6fdb; --s2:#d9622b; --s3:#12925f; --s4:#8250df; --s5:#bf3989; --s6:#8a6d00; --s7:#0e8ba0; }
@media (prefers-color-scheme: dark) { :root { --ground:#141518; --card:#1c1e22; --ink:#e9eaec; --muted:#a0a4ab;
  --grid:#2e3136; --edge:#34373d; --good:#4cc38a; --warn:#e0b040; --bad:#ff7b8c;
  --s0:#a0a6b0; --s1:#5c9dff; --s2:#f58a55; --s3:#3fcb95; --s4:#b08cff; --s5:#f07ab8; --s6:#d8b230; --s7:#45c3d8; } }
)css";

inline constexpr const char* kPageStyle = R"css(
* { box-sizing: border-box; }
body { margin:0; background:var(--ground); color:var(--ink); font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif; }
main { max-width:1480px; margin:0 auto; padding:28px 24px 60px; }
h1 { font-size:26px; margin:0 0 2px; letter-spacing:-.01em; } h2 { font-size:17px; margin:0 0 8px; }
p { margin:4px 0; } .muted, figcaption { color:var(--muted); font-size:13px; }
.tiles { display:flex; flex-wrap:wrap; gap:12px; margin:18px 0; }
.tile { background:var(--card); border:1px solid var(--edge); border-radius:10px; padding:10px 16px; min-width:150px; }
.tile b { display:block; font-size:22px; font-variant-numeric:tabular-nums; } .tile span { color:var(--muted); font-size:13px; }
.charts { display:grid; grid-template-columns:repeat(auto-fit,minmax(min(560px,100%),1fr)); gap:16px; margin:16px 0; }
figure { margin:0; background:var(--card); border:1px solid var(--edge); border-radius:10px; padding:16px; }
svg { width:100%; height:auto; display:block; } .narrow { display:none; }
.key { display:flex; flex-wrap:wrap; gap:4px 18px; margin:0 0 6px; font-size:13.5px; }
.key i { display:inline-block; width:11px; height:11px; border-radius:50%; margin-right:7px; }
.scroll { overflow-x:auto; background:var(--card); border:1px solid var(--edge); border-radius:10px; margin:16px 0; }
table { border-collapse:collapse; width:100%; font-variant-numeric:tabular-nums; font-size:13.5px; }
th { text-align:right; font-weight:600; color:var(--muted); padding:10px 9px; border-bottom:1px solid var(--edge); white-space:nowrap; }
td { text-align:right; padding:4px 9px; white-space:nowrap; } th.l, td.l { text-align:left; }
tr.first th { border-top:1px solid var(--edge); border-bottom:0; color:var(--ink); font-weight:400; padding:9px 9px 3px; }
tr.row th { border:0; padding:4px 9px 4px 22px; color:var(--ink); font-weight:400; } td small { color:var(--muted); }
tr.differs th.l::after { content:" ≠"; color:var(--warn); } tr.differs th.l, tr.differs td { font-weight:600; color:var(--warn); }
td.note { white-space:normal; color:var(--muted); text-align:left; font-size:13px; padding-top:0; }
.bar { display:inline-block; height:7px; border-radius:4px; background:var(--edge); width:70px; margin-left:8px; vertical-align:middle; }
.bar i { display:block; height:7px; border-radius:4px; background:var(--s1); }
.good { color:var(--good); } .warn { color:var(--warn); } .bad { color:var(--bad); font-weight:600; }
details { margin:14px 0; } summary { cursor:pointer; font-weight:600; } dl { display:grid; grid-template-columns:max-content 1fr; gap:2px 18px; }
dt { color:var(--muted); } dd { margin:0; overflow-wrap:anywhere; }
@media (max-width:600px) { .wide { display:none; } .narrow { display:block; } }
@media (max-width:760px) {
  main { padding:20px 12px 40px; } figure { padding:12px; } .tile { flex:1 1 40%; min-width:0; padding:8px 12px; }
  dl { grid-template-columns:1fr; } dd { margin:0 0 6px; }
  table, tbody, tr, td, th { display:block; } thead { display:none; } th, td { white-space:normal; }
  tr.row { padding:2px 12px 10px; } tr.row th { padding:6px 0 2px; font-weight:600; } tr.first th { padding:10px 12px 2px; }
  tr.row td, tr.row td.l { display:flex; justify-content:space-between; gap:12px; text-align:right; padding:1px 0; }
  tr.row td::before { content:attr(data-what); color:var(--muted); } td.note { padding:0 12px 10px; }
}
)css";

// What a chart needs, on the page and as a file of its own.
inline constexpr const char* kChartStyle = R"css(
svg text { font:11.5px system-ui,sans-serif; fill:var(--muted); }
svg .axis { font-size:12px; } svg .label { paint-order:stroke; stroke:var(--card); stroke-width:4px; stroke-linejoin:round; } svg .ink { fill:var(--ink); } svg .grid { stroke:var(--grid); stroke-width:1; }
svg .line { fill:none; stroke-width:2; } svg .dashed { stroke-dasharray:2 4; stroke-linecap:round; } svg .ceiling { stroke:var(--muted); stroke-width:1; stroke-dasharray:4 4; }
svg .strong { stroke-width:1.6; stroke:var(--ink); } svg .dot { stroke:var(--card); stroke-width:1.2; }
svg .name { font-size:11px; paint-order:stroke; stroke:var(--card); stroke-width:3px; stroke-linejoin:round; } svg .title { font-size:14px; font-weight:600; } svg .card { fill:var(--card); }
)css";

}  // namespace tilewright::lab
