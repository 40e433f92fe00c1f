# Seconds that the longer tests take alone on a core, roughly, by name: their order in a fresh clone (tw_test).
# After a whole run: sort -k3 -n -r build/Testing/Temporary/CTestCostData.txt
foreach(row
    compile=250 cpu=150 graphs=110 cuda_emulation_0=120 cuda_emulation_1=60 cuda_emulation_2=60 cuda_emulation_3=110
    graph_properties_on_cpu_0=16 graph_properties_on_cpu_1=16 graphs_on_cpu_0=6 graphs_on_cpu_1=6 graphs_on_reference=21
    ops_on_cpu_0=28 ops_on_cpu_1=25 cuda_compiles_for_sm_80=84 cuda_compiles_for_sm_90a=95 cuda_compiles_for_sm_100=15
    cuda_compiles_for_sm_120=12 lab_pairs=56 tw=47 judged_on_reference_0=19 judged_on_reference_1=19 judged_on_cpu_0=14
    judged_on_cpu_1=14 cuda=50 product_programs_on_cpu_0=6 product_programs_on_cpu_1=5 kernels_on_cpu_0=6 kernels_on_cpu_1=6
    products_on_cpu_0=5 products_on_cpu_1=5 judged_cases_on_cpu=14 judged_cases_on_avx2=14 judge_finds_planted_mistakes=13
    replay_short=15 product_programs_on_reference=5 package_installed=38 lab_sweep=32 training=28 training_judged=30
    tokenizer_judged=13 refused_by_the_compiler=18)
  string(REPLACE "=" ";" row ${row})
  list(GET row 0 name)
  list(GET row 1 seconds)
  set(TW_SECONDS_${name} ${seconds})
endforeach()
