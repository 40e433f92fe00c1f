// The JSON form of runs and expectations; the one file of the harness that includes the JSON library.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/plain_message.h"
#include "harness/run/expectations.h"
#include "harness/run/record.h"

namespace tilewright::lab {

namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinity and no NaN: they become null, as what was not measured.
Json number(std::optional<double> value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json interval(const std::optional<Interval>& value) {
  return value ? Json::array({number(value->low), number(value->high)}) : Json(nullptr);
}

std::optional<double> number_at(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || it->is_null()) return std::nullopt;
  return it->get<double>();
}

std::string text_at(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? "" : it->get<std::string>();
}

std::optional<Interval> interval_at(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || it->is_null()) return std::nullopt;
  const auto bound = [&](std::size_t i) { return it->at(i).is_null() ? NAN : it->at(i).get<double>(); };
  return Interval{bound(0), bound(1)};
}

Json row_json(const Row& row) {
  Json fields = {{"target", row.target},
                 {"contender", row.contender},
                 {"device", row.device},
                 {"shape", row.shape},
                 {"dtype", row.dtype},
                 {"verified", row.verified},
                 {"max_rel_err", number(row.max_rel_err)},
                 {"tolerance", number(row.tolerance)},
                 {"median_us", number(row.median_us)},
                 {"ci95_us", interval(row.ci95_us)},
                 {"samples", row.samples},
                 {"device_us", number(row.device_us)},
                 {"device_ci95_us", interval(row.device_ci95_us)},
                 {"compile_ms", number(row.compile_ms)},
                 {"from_disk", row.from_disk},
                 {"chosen", row.chosen.empty() ? Json(nullptr) : Json(row.chosen)},
                 {"rate", number(row.rate)},
                 {"unit", row.unit},
                 {"floor_us", number(row.floor_us)},
                 {"roofline", number(row.roofline)},
                 {"speedup", number(row.speedup)},
                 {"speedup_ci95", interval(row.speedup_ci95)},
                 {"verdict", name(row.verdict)}};
  if (row.waited_us) fields["waited_us"] = number(row.waited_us);
  return fields;
}

Row parse_row(const Json& j) {
  Row row;
  row.target = j.at("target");
  row.contender = j.at("contender");
  row.device = j.at("device");
  row.shape = j.at("shape");
  row.dtype = j.at("dtype");
  row.verified = j.at("verified");
  row.max_rel_err = number_at(j, "max_rel_err");
  row.tolerance = number_at(j, "tolerance");
  row.median_us = number_at(j, "median_us");
  row.ci95_us = interval_at(j, "ci95_us");
  row.samples = j.at("samples");
  row.device_us = number_at(j, "device_us");  // the next three: not in older files
  row.device_ci95_us = interval_at(j, "device_ci95_us");
  row.chosen = text_at(j, "chosen");
  row.compile_ms = number_at(j, "compile_ms");  // nor these two
  row.from_disk = j.value("from_disk", false);
  row.waited_us = number_at(j, "waited_us");  // of work that waits for data
  row.rate = number_at(j, "rate");
  row.unit = j.at("unit");
  row.floor_us = number_at(j, "floor_us");
  row.roofline = number_at(j, "roofline");
  row.speedup = number_at(j, "speedup");
  row.speedup_ci95 = interval_at(j, "speedup_ci95");
  const auto verdict = parse_verdict(j.at("verdict").get<std::string>());
  if (!verdict) throw Error(fmt::format("{}: unknown verdict {}", row.key(), j.at("verdict").dump()));
  row.verdict = *verdict;
  return row;
}

std::string_view unit_name(perf::MathUnit unit) {
  return unit == perf::MathUnit::matrix ? "matrix" : "vector";
}

DType parse_dtype_or_throw(std::string_view text) {
  const auto dtype = parse_dtype(text);
  if (!dtype) throw Error(fmt::format("unknown dtype '{}'", text));
  return *dtype;
}

Json flops_json(const perf::FlopsByType& flops) {
  Json object = Json::object();
  for (DType dtype : kAllDTypes) {
    if (flops[dtype] != 0) object[std::string(name(dtype))] = flops[dtype];
  }
  return object;
}

perf::FlopsByType parse_flops(const Json& j) {
  perf::FlopsByType flops;
  for (const auto& [dtype, count] : j.items()) flops[parse_dtype_or_throw(dtype)] = count.get<double>();
  return flops;
}

Json work_json(const WorkEntry& e) {
  const perf::Cost& cost = e.work.cost;
  Json j = {{"target", e.target},
            {"device", e.device},
            {"shape", e.shape},
            {"dtype", e.dtype},
            {"matrix_flops", flops_json(cost.matrix)},
            {"vector_flops", flops_json(cost.vector)},
            {"special_ops", cost.special_ops},
            {"bytes_read", cost.bytes_read},
            {"bytes_written", cost.bytes_written},
            {"link_bytes", cost.link_bytes},
            {"working_set_bytes", e.work.working_set_bytes}};
  if (e.sweep) j["sweep"] = {{"axis", e.sweep->axis}, {"value", e.sweep->value}, {"series", e.sweep->series}};
  return j;
}

WorkEntry parse_work(const Json& j) {
  WorkEntry e{j.at("target"), j.at("device"), j.at("shape"), j.at("dtype"), {}};
  e.work.cost.matrix = parse_flops(j.at("matrix_flops"));
  e.work.cost.vector = parse_flops(j.at("vector_flops"));
  e.work.cost.special_ops = j.at("special_ops");
  e.work.cost.bytes_read = j.at("bytes_read");
  e.work.cost.bytes_written = j.at("bytes_written");
  e.work.cost.link_bytes = j.at("link_bytes");
  e.work.working_set_bytes = j.at("working_set_bytes");
  if (j.contains("sweep")) {
    const Json& s = j.at("sweep");
    e.sweep = SweepPoint{s.at("axis"), s.at("value"), s.at("series")};
  }
  return e;
}

Json ceilings_json(const DeviceCeilings& d) {
  Json levels = Json::array();
  for (const MemoryLevel& l : d.ceilings.levels) {
    levels.push_back({{"name", l.name},
                      {"capacity_bytes", l.capacity_bytes},
                      {"read", l.read},
                      {"write", l.write},
                      {"copy", l.copy}});
  }
  Json math = Json::array();
  for (const MathRate& m : d.ceilings.math) {
    math.push_back({{"unit", unit_name(m.unit)}, {"dtype", name(m.dtype)}, {"flops_per_s", m.flops_per_s}});
  }
  return {{"device", d.device}, {"source", d.ceilings.source}, {"levels", levels}, {"math", math}};
}

DeviceCeilings parse_ceilings(const Json& j) {
  DeviceCeilings d{j.at("device"), {}};
  d.ceilings.source = j.at("source");
  for (const Json& l : j.at("levels")) {
    d.ceilings.levels.push_back(
        {l.at("name"), l.at("capacity_bytes"), l.at("read"), l.at("write"), l.at("copy")});
  }
  for (const Json& m : j.at("math")) {
    const bool matrix = m.at("unit") == "matrix";
    d.ceilings.math.push_back({matrix ? perf::MathUnit::matrix : perf::MathUnit::vector,
                               parse_dtype_or_throw(m.at("dtype").get<std::string>()), m.at("flops_per_s")});
  }
  return d;
}

Json map_json(const std::vector<std::pair<std::string, std::string>>& entries) {
  Json object = Json::object();
  for (const auto& [key, value] : entries) object[key] = value;
  return object;
}

std::vector<std::pair<std::string, std::string>> parse_map(const Json& j) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const auto& [key, value] : j.items()) entries.emplace_back(key, value.get<std::string>());
  return entries;
}

// One list of the fields serves the writer and the reader, so that they cannot differ.
template <class Env, class Visit>
void visit_environment(Env& e, Visit&& visit) {
  visit("cpu_model", e.cpu_model);
  visit("cores", e.cores);
  visit("affinity", e.affinity);
  visit("governor", e.governor);
  visit("memory_gib", e.memory_gib);
  visit("swap_used_gib", e.swap_used_gib);
  visit("virtual_machine", e.virtual_machine);
  visit("kernel", e.kernel);
  visit("compiler", e.compiler);
  visit("git_commit", e.git_commit);
  visit("date", e.date);
  visit("gpu_name", e.gpu_name);
  visit("gpu_driver", e.gpu_driver);
  visit("seed", e.seed);
  visit("load_average", e.load_average);
  visit("cgroup_cpu", e.cgroup_cpu);
  visit("cgroup_memory", e.cgroup_memory);
  visit("frame_us", e.frame_us);
  visit("interrupted", e.interrupted);
}

Json environment_json(const Environment& e) {
  Json j;
  visit_environment(e, [&](const char* key, const auto& value) { j[key] = value; });
  j["options"] = map_json(e.options);
  j["notes"] = map_json(e.notes);
  j["work"] = Json::array();
  for (const WorkEntry& entry : e.work) j["work"].push_back(work_json(entry));
  j["ceilings"] = Json::array();
  for (const DeviceCeilings& entry : e.ceilings) j["ceilings"].push_back(ceilings_json(entry));
  return j;
}

// Facts that are missing stay unknown: a file of an older version is still a record.
Environment parse_environment(const Json& j) {
  Environment e;
  visit_environment(e, [&](const char* key, auto& value) {
    if (j.contains(key)) value = j.at(key).get<std::decay_t<decltype(value)>>();
  });
  if (j.contains("options")) e.options = parse_map(j.at("options"));
  if (j.contains("notes")) e.notes = parse_map(j.at("notes"));
  for (const Json& entry : j.value("work", Json::array())) e.work.push_back(parse_work(entry));
  for (const Json& entry : j.value("ceilings", Json::array())) e.ceilings.push_back(parse_ceilings(entry));
  return e;
}

RunRecord parse_run_json(const Json& j) {
  RunRecord run;
  const Json& list = j.is_object() ? j.at("results") : j;
  if (!list.is_array()) throw Error("a list of results is expected");
  bool has_conditions = j.is_object();
  if (j.is_object()) run.environment = parse_environment(j.at("environment"));
  for (const Json& entry : list) {
    if (entry.contains("environment")) {
      run.environment = parse_environment(entry.at("environment"));
      has_conditions = true;
    } else {
      run.rows.push_back(parse_row(entry));
    }
  }
  if (!has_conditions) throw Error("not a file of the lab: it has no environment object");
  for (Row& row : run.rows) {
    for (const auto& [key, note] : run.environment.notes) {
      if (key == row.key()) row.note = note;
    }
  }
  return run;
}

// Runs `parse` on the text; whatever is wrong with it becomes a Failure that says so.
template <class T, class Parse>
Result<T> parsed(const std::string& text, Parse&& parse) {
  try {
    return parse(Json::parse(text));
  } catch (const Json::exception& error) {
    return failure(Failure::Kind::invalid, fmt::format("not a file of the lab: {}", plain_message(error)));
  } catch (const Error& error) {
    return failure(Failure::Kind::invalid, error.what());
  }
}

Json expectation_json(const Expectation& e) {
  return {{"target", e.target},
          {"contender", e.contender},
          {"device", e.device},
          {"shape", e.shape},
          {"dtype", e.dtype},
          {"median_us", e.median_us},
          {"ci95_us", interval(e.ci95_us)},
          {"samples", e.samples},
          {"device_us", number(e.device_us)},
          {"chosen", e.chosen.empty() ? Json(nullptr) : Json(e.chosen)},
          {"rate", number(e.rate)},
          {"unit", e.unit},
          {"roofline", number(e.roofline)},
          {"speedup", number(e.speedup)},
          {"provenance",
           {{"commit", e.commit},
            {"date", e.date},
            {"cpu", e.cpu},
            {"gpu", e.gpu},
            {"driver", e.driver},
            {"kernel", e.kernel},
            {"compiler", e.compiler},
            {"governor", e.governor}}}};
}

Expectation parse_expectation(const Json& j) {
  Expectation e;
  e.target = j.at("target");
  e.contender = j.at("contender");
  e.device = j.at("device");
  e.shape = j.at("shape");
  e.dtype = j.at("dtype");
  e.median_us = j.at("median_us");
  e.ci95_us = interval_at(j, "ci95_us").value_or(Interval{e.median_us, e.median_us});
  e.samples = j.at("samples");
  e.device_us = number_at(j, "device_us");
  e.chosen = text_at(j, "chosen");
  e.rate = number_at(j, "rate");
  e.unit = j.at("unit");
  e.roofline = number_at(j, "roofline");
  e.speedup = number_at(j, "speedup");
  const Json& p = j.at("provenance");
  e.commit = p.at("commit");
  e.date = p.at("date");
  e.cpu = p.at("cpu");
  e.gpu = p.at("gpu");
  e.driver = p.at("driver");
  e.kernel = p.at("kernel");
  e.compiler = p.at("compiler");
  e.governor = p.at("governor");
  return e;
}

}  // namespace

std::string to_json(const RunRecord& run) {
  Environment environment = run.environment;
  for (const Row& row : run.rows) {
    const bool known = std::any_of(environment.notes.begin(), environment.notes.end(),
                                   [&](const auto& note) { return note.first == row.key(); });
    if (!row.note.empty() && !known) environment.notes.emplace_back(row.key(), row.note);
  }
  Json list = Json::array();
  for (const Row& row : run.rows) list.push_back(row_json(row));
  list.push_back({{"environment", environment_json(environment)}});
  return list.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<RunRecord> parse_run(const std::string& json) { return parsed<RunRecord>(json, parse_run_json); }

std::string to_json(const Expectations& expectations) {
  Json list = Json::array();
  for (const Expectation& e : expectations.entries) list.push_back(expectation_json(e));
  return Json{{"key", expectations.key}, {"entries", list}}.dump(1, ' ', false,
                                                                 Json::error_handler_t::replace) +
         "\n";
}

Result<Expectations> parse_expectations(const std::string& json) {
  return parsed<Expectations>(json, [](const Json& j) {
    Expectations expectations{j.at("key"), {}};
    for (const Json& entry : j.at("entries")) expectations.entries.push_back(parse_expectation(entry));
    return expectations;
  });
}

}  // namespace tilewright::lab
