// SPDX-License-Identifier: Apache-2.0
// The image of a program that runs read: node for node its graph; of users' operations, attention among them, others without adjoints.
#include <shardwise/shardwise.hpp>

#if !SHARDWISE_DEVICE_PASS  // nvcc's device pass has neither the program nor its image
namespace {

namespace sw = shardwise;

struct tp : sw::axis<1> {};
using mesh = sw::mesh<tp>;
using in = sw::input_tensor<float, sw::shape<2, 4, 2, 8>>;
struct attend {
  constexpr auto operator()(const auto& x) const { return sw::sum(sw::scaled_dot_product_attention(x, x, x)); }
};
using step = sw::gradient_step<attend, mesh, sw::inputs<in>, sw::wrt<0>>;
constexpr const auto& program = step::program;
constexpr const auto& image = sw::runtime::program_image<step>::value;

constexpr bool same_nodes = [] {
  bool same = image.node_count == program.node_count && image.spec_count == program.spec_count &&
              image.output_count == program.output_count && image.custom_count == program.custom_count;
  for (int i = 0; same && i < program.node_count; ++i) {
    const sw::node &a = program.nodes[i], &b = image.nodes[i];
    same = a.op == b.op && a.inputs == b.inputs && a.scope == b.scope && a.a == b.a &&
           program.spec_of(i) == image.spec_of(i) && sw::written_operands(program, a) == sw::written_operands(image, b) &&
           sw::result_count(program, a) == sw::result_count(image, b);
    for (int k = 0; same && k < a.inputs; ++k) same = a.in[k] == b.in[k];
  }
  for (int k = 0; same && k < program.output_count; ++k) same = program.outputs[k] == image.outputs[k];
  return same;
}();
static_assert(same_nodes);

static_assert(program.custom_count > 1);  // attention, its adjoint and what they share
constexpr bool bare = [] {
  for (int k = 0; k < program.custom_count; ++k) {
    const sw::custom_operation &a = *program.customs[k], &b = *image.customs[k];
    if (!sw::is_same_name(a.name, b.name) || a.operands != b.operands || b.adjoint.value != nullptr) return false;
    if (sw::is_same_operation(&a, &b)) return false;
    for (int j = 0; j < k; ++j)
      if (sw::is_same_operation(image.customs[j], &b)) return false;  // two operations stay two
  }
  return true;
}();
static_assert(bare);

}  // namespace
#endif
