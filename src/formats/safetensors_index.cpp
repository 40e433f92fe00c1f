// {"metadata": {"total_size": N}, "weight_map": {TENSOR: FILE, …}}, as Hugging Face's libraries write it.
#include "formats/safetensors_index.h"

#include "formats/json.h"

namespace tilewright::formats {

using nlohmann::json;

WeightMap parse_safetensors_index(Bytes file) {
  const json root = parse_json(text(file), "the index");
  const auto map = root.is_object() ? root.find("weight_map") : root.end();
  if (map == root.end() || !map->is_object())
    throw Error("it is no index of safetensors files: it has no \"weight_map\"");
  WeightMap out;
  for (const auto& [tensor, value] : map->items()) {
    const std::string shard = value.is_string() ? value.get<std::string>() : "";
    if (shard.empty() || shard == "." || shard == ".." || shard.find('/') != std::string::npos ||
        shard.find('\0') != std::string::npos)
      throw Error(fmt::format("tensor \"{}\": its file, {}, is no name of a file in the index's folder",
                              tensor, value.dump()));
    out.emplace_back(tensor, shard);
  }
  return out;
}

std::string safetensors_index(const WeightMap& map, std::uint64_t total_bytes) {
  std::string text =
      fmt::format("{{\n  \"metadata\": {{\"total_size\": {}}},\n  \"weight_map\": {{", total_bytes);
  for (std::size_t i = 0; i < map.size(); ++i)
    text += fmt::format("{}\n    {}: {}", i > 0 ? "," : "", json_string(map[i].first),
                        json_string(map[i].second));
  return text + "\n  }\n}\n";
}

}  // namespace tilewright::formats
