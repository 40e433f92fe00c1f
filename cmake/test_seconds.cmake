# Seconds that the longer tests take alone on a core, roughly, by name: their order in a fresh clone (tw_test).
# After a whole run: sort -k3 -n -r build/Testing/Temporary/CTestCostData.txt
foreach(row
    compile=150 cpu=110 graphs=105 cuda_emulation_0=40 cuda_emulation_1=20 cuda_emulation_2=35 cuda_emulation_3=60
    graph_properties_on_cpu_0=33 graph_properties_on_cpu_1=33 graphs_on_cpu_0=34 graphs_on_cpu_1=34 graphs_on_reference=42
    ops_on_cpu_0=52 ops_on_cpu_1=52 cuda_compiles_for_sm_80=60 cuda_compiles_for_sm_90a=65 cuda_compiles_for_sm_100=25
    cuda_compiles_for_sm_120=25 lab_pairs=54 tw=47 judged_on_reference_0=34 judged_on_reference_1=34 judged_on_cpu_0=28
    judged_on_cpu_1=28 cuda=38 product_programs_on_cpu_0=19 product_programs_on_cpu_1=19 kernels_on_cpu_0=16 kernels_on_cpu_1=16
    products_on_cpu_0=15 products_on_cpu_1=15 judged_cases_on_cpu=14 judged_cases_on_avx2=14 judge_finds_planted_mistakes=13
    replay_short=15 product_programs_on_reference=11)
  string(REPLACE "=" ";" row ${row})
  list(GET row 0 name)
  list(GET row 1 seconds)
  set(TW_SECONDS_${name} ${seconds})
endforeach()
