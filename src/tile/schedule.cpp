// The printed form of a schedule.
#include <tilewright/tile/schedule.h>

#include <fmt/format.h>

namespace tilewright::tile {

std::string_view to_string(Rounds rounds) {
  constexpr std::string_view kNames[] = {"apart", "overlapped", "fa3_pingpong"};
  return kNames[static_cast<std::size_t>(rounds)];
}

namespace {

class Text {
 public:
  explicit Text(std::string_view kind) : text_(kind) {}

  template <typename Struct, typename T>
  void add(const Struct& printed, const ScheduleField<Struct, T>& field) {
    const T value = printed.*field.member;
    if (value == Struct{}.*field.member) return;
    text_ += fmt::format(" {}=", field.name);
    if constexpr (std::is_enum_v<T>)
      text_ += to_string(value);
    else
      text_ += fmt::format("{}", value);
  }
  std::string str() && { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

std::string to_string(const Schedule& schedule) {
  return std::visit(
      [&]<typename Kind>(const Kind& kind) {
        Text text(Kind::kName);
        text.add(schedule, ScheduleField{"threads", &Schedule::threads});
        std::apply([&](const auto&... field) { (text.add(kind, field), ...); }, Kind::fields());
        text.add(schedule, ScheduleField{"vector_bytes", &Schedule::vector_bytes});
        return std::move(text).str();
      },
      schedule.kind);
}

DotUnit dot_unit(const Schedule& schedule) {
  return std::visit([]<typename Kind>(const Kind&) { return Kind::kUnit; }, schedule.kind);
}

}  // namespace tilewright::tile
