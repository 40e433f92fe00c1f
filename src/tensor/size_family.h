// SizeFamily: the programs of one function at several sizes and with several numbers, which share kernels
// that take what differs as arguments.
#pragma once

#include "tensor/state.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::detail {

class SizeFamily {
 public:
  explicit SizeFamily(const GraphOptions& options = {}) : options_(options) {}

  struct Shared {
    std::shared_ptr<CompiledGraph> graph;  // null: this member needs kernels of its own
    std::string why_not;                   // then
  };
  // The first, second … member to compare with; nullopt behind the last. May throw: there is no such
  // member.
  using Others = std::function<std::optional<ir::Graph>(std::size_t)>;
  // A program whose kernels serve other members, too: those that there are already, if they fit, or kernels
  // that come of comparing with `others` (passes/plan/generalise.h). Each member is lowered, so that its
  // numbers are its own, whatever it was compared with.
  Shared shared(DeviceState& device, const ir::Graph& graph, const Others& others);
  // The plan of another member with the kernels of `known`, a member's; nullopt where its own are others.
  std::optional<tile::Plan> plan_at(DeviceState& device, const ir::Graph& graph,
                                    const tile::Plan& known) const;
  // The same of an eager operation, compared with the members that came before it; and where sizes as
  // arguments cost nothing, the first one with members that are only imagined, so that the second compiles
  // nothing. Null for a first one elsewhere.
  Shared shared_eagerly(DeviceState& device, const ir::Graph& graph, const Others& imagined);

 private:
  // How rows that are reduced are walked: whole, by tiles as long as they are, or in blocks, so that they may
  // have any length.
  enum class Rows : std::uint8_t { whole, in_blocks };
  class Member;
  struct General {
    Rows rows = Rows::whole;
    tile::Plan plan;
    std::vector<std::shared_ptr<runtime::LoadedKernel>> kernels;
  };
  Shared fitting(DeviceState& device, Member& member);
  Shared compared(DeviceState& device, Member& member, Rows rows, const Others& others);

  static constexpr std::size_t kMostGenerals = 8, kMostSeen = 3;
  GraphOptions options_;
  std::vector<General> generals_;  // used last first
  std::vector<ir::Graph> seen_;    // eager members that fitted none before them, the newest first
};

// Types of arguments as another member may have them: every size that is more than one moved a little, each
// place by itself or those that are equal alike, all axes or all but the last; nullopt behind the last way.
std::optional<std::vector<ir::Type>> imagined_types(const std::vector<ir::Type>& types, std::size_t way);

// The family of a graph: one for all graphs of its form, compiled with these options.
std::shared_ptr<SizeFamily> family_of(DeviceState& device, const ir::Graph& graph,
                                      const GraphOptions& options);

}  // namespace tilewright::detail
