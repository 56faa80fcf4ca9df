// SPDX-License-Identifier: Apache-2.0
// cuDNN's convolutions, registered as this program's convolution library on devices. Include it in exactly one source of a program, compiled
// apart (it has cuDNN's front end in it), with attention.hpp beside it; CMake's shardwise::cudnn does that. Nothing else includes it.
//
// It takes every stride, padding, dilation and number of groups that cuDNN has a kernel for, in both memory formats, of float, double and
// elements of two bytes, whose sums are float. What cuDNN has no kernel for runs by the library's own one, and
// cuda::convolution_report() says why.
//
// Differences to the library's own kernels: sums are cuDNN's, so bits differ from theirs; where a window leaves the image its numbers are
// multiplied with zeros, so that those which are not finite give no number (NaN) there.
#pragma once

#include <shardwise/runtime/cuda/convolution_library.hpp>
#include <shardwise/runtime/cuda/cudnn/plan_cache.hpp>

namespace shardwise::inline v0_1::cuda::cudnn {

// --- graphs -----------------------------------------------------------------------------------------------------------------

// Numbers by which a graph knows its blocks, gradients as what they are of.
enum convolution_id : std::int64_t { id_image = 1, id_weight, id_result };

// A graph before it is built for a device.
class convolution_graph {
 public:
  explicit convolution_graph(const runtime::convolution_request& r) : r_(r), graph_(std::make_shared<fe::graph::Graph>()) {
    const fe::DataType_t sums = r.type == dtype::f64 ? fe::DataType_t::DOUBLE : fe::DataType_t::FLOAT;
    graph_->set_io_data_type(elements()).set_intermediate_data_type(sums).set_compute_data_type(sums);
    using namespace fe::graph;
    if (r.pass == runtime::convolution_pass::forward)
      write(graph_->conv_fprop(operand(id_image), operand(id_weight), options<Conv_fprop_attributes>()), id_result);
    else if (r.pass == runtime::convolution_pass::image_gradient)
      write(graph_->conv_dgrad(operand(id_result), operand(id_weight), options<Conv_dgrad_attributes>()), id_image);
    else write(graph_->conv_wgrad(operand(id_result), operand(id_image), options<Conv_wgrad_attributes>()), id_weight);
  }
  const std::shared_ptr<fe::graph::Graph>& get() const { return graph_; }

 private:
  using tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
  using numbers = std::vector<std::int64_t>;

  fe::DataType_t elements() const {
    return r_.type == dtype::f64    ? fe::DataType_t::DOUBLE
           : r_.type == dtype::bf16 ? fe::DataType_t::BFLOAT16
           : r_.type == dtype::f16  ? fe::DataType_t::HALF
                                    : fe::DataType_t::FLOAT;
  }
  // (n, c, h, w) of images, (o, c / groups, kh, kw) of weights: cuDNN counts the groups itself.
  template <class Tensor>
  void lay(Tensor& t, convolution_id id) const {
    const auto as = [&](const numbers& extent, const std::int64_t(&stride)[4]) {
      t.set_dim(extent).set_stride(numbers(stride, stride + 4));
    };
    t.set_uid(id);
    if (id == id_image) as({r_.n, r_.c, r_.h, r_.w}, r_.image);
    if (id == id_weight) as({r_.o, r_.i, r_.kh, r_.kw}, r_.weight);
    if (id == id_result) as({r_.n, r_.o, r_.oh, r_.ow}, r_.result);
  }
  tensor operand(convolution_id id) {
    fe::graph::Tensor_attributes t;
    t.set_data_type(elements());
    lay(t, id);
    return graph_->tensor(t);
  }
  void write(const tensor& t, convolution_id id) {
    t->set_output(true).set_data_type(elements());
    lay(*t, id);
  }
  template <class Options>
  Options options() const {
    const auto pair = [](const std::int64_t(&x)[2]) { return numbers(x, x + 2); };
    Options o;
    o.set_name("convolution");
    o.set_pre_padding(pair(r_.before));
    o.set_post_padding(pair(r_.behind));
    o.set_stride(pair(r_.stride));
    o.set_dilation(pair(r_.dilation));
    return o;
  }

  const runtime::convolution_request& r_;
  std::shared_ptr<fe::graph::Graph> graph_;
};

// Kernels that are not asked for. Sums by transforms of whole tiles round differently from sums of products: the small tiles alone, and
// for float alone, where they stay within a few last places.
inline std::vector<fe::NumericalNote_t> unwanted(const convolution_request& r) {
  using note = fe::NumericalNote_t;
  std::vector<note> all{note::DOWN_CONVERT_INPUTS, note::REDUCED_PRECISION_REDUCTION, note::FFT, note::WINOGRAD_TILE_6x6,
                        note::WINOGRAD_TILE_13x13};
  if (r.of.type != dtype::f32) all.push_back(note::WINOGRAD);
  if (r.of.type == dtype::f32 && !r.tf32) all.push_back(note::TENSOR_CORE);
  if (r.ordered) all.push_back(note::NONDETERMINISTIC);
  return all;
}

// The first of the kernels that cuDNN's heuristics name which wants no more workspace than there is. Nothing is timed, so the choice is the
// same in every process, for equal devices and versions.
inline void build(plan<convolution_request>& p, cudnnHandle_t handle) {
  p.graph = convolution_graph(p.request.of).get();
  fe::graph::Graph& g = *p.graph;
  fe::error_t e = g.validate();
  if (e.is_good()) e = g.build_operation_graph(handle);
  if (e.is_good()) e = g.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
  if (e.is_good()) {
    g.deselect_numeric_notes(unwanted(p.request));
    g.deselect_workspace_greater_than(p.request.bytes);
    e = g.check_support(handle);
  }
  if (e.is_good()) e = g.build_plans(handle, fe::BuildPlanPolicy_t::HEURISTICS_CHOICE);
  if (e.is_good()) e = g.get_workspace_size(p.bytes);
  if (e.is_bad()) p.why = name() + ": " + e.get_message();
  else if (p.bytes > p.request.bytes)
    p.why = name() + " wants " + std::to_string(p.bytes) + " bytes of workspace, and there are " +
            std::to_string(p.request.bytes);
}
inline const plan<convolution_request>& plan_of(const convolution_request& r, CUstream_st* stream) {
  return plan_cache<convolution_request>::get().of(r, stream, "convolution",
                                                   [](auto& p, cudnnHandle_t handle) { build(p, handle); });
}

// --- the table --------------------------------------------------------------------------------------------------------------

inline std::string refusal(const convolution_request& r, CUstream_st* stream) { return plan_of(r, stream).why; }

inline void run(const convolution_request& r, const runtime::convolution_pointers& p, void* workspace, CUstream_st* stream) {
  const plan<convolution_request>& of = plan_of(r, stream);
  if (!of.why.empty()) throw std::logic_error("shardwise: convolution by cuDNN: " + text_of(r) + ": " + of.why);
  std::unordered_map<std::int64_t, void*> blocks{{id_image, p.image}, {id_weight, p.weight}, {id_result, p.result}};
  run_plan(of, blocks, workspace, stream, "convolution");
}

inline bool has_run(const convolution_request& r) { return plan_of(r, nullptr).ran; }

inline constexpr convolution_library convolution{&name, &refusal, &run, &has_run};

// When the program begins.
inline const bool convolution_registered = (use_convolution_library(&convolution), true);

}  // namespace shardwise::inline v0_1::cuda::cudnn
