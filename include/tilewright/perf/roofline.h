// Roofline bounds: from a cost and a machine to the least and the most time the work should take, and what
// limits it. The method: Williams, Waterman, Patterson (2009); the worked results: "All About Rooflines" in
// "How to Scale Your Model" (2025).
#pragma once

#include <tilewright/perf/cost.h>
#include <tilewright/perf/hardware.h>

#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright::perf {

// What the lower bound consists of.
enum class Limit { nothing, compute, special, memory, link };
std::string_view name(Limit limit);  // "compute", "memory", …

struct Bounds {
  double t_matrix_s = 0;
  double t_vector_s = 0;
  double t_special_s = 0;  // exp and its like on their own unit, 0 where there is none
  double t_math_s = 0;     // matrix and vector together: the longer one, or their sum where they share units
  double t_memory_s = 0;
  double t_link_s = 0;
  double t_comms_s = 0;  // the link's time when anything crosses it, else the memory's
  double lower_s = 0;    // everything overlaps: the largest of all
  double upper_s = 0;    // nothing overlaps: the sum
  double intensity = 0;  // FLOPs per byte of the traffic that t_comms_s is about
  double ridge = 0;      // the intensity at which t_math_s equals t_comms_s on this machine; 0 without FLOPs
  Limit limit = Limit::nothing;
  std::vector<std::string> notes;  // rates that had to be substituted
  friend bool operator==(const Bounds&, const Bounds&) = default;
};

// Throws Error when the hardware lacks a figure that the cost needs.
Bounds bounds(const Cost& cost, const Hardware& hardware);

}  // namespace tilewright::perf
#pragma GCC visibility pop
