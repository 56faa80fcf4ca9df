// SPDX-License-Identifier: Apache-2.0
// The proof that users run on their own operations: what is right holds, and each kind of mistake is found as what it is.
#include <08_own_operation/operation.hpp>
#include <custom_operations.hpp>
#include <eight_operands.hpp>
#include <shardwise/laws/cases.hpp>

namespace {

namespace sw = shardwise;
namespace laws = sw::laws;

using gate = laws::customs<gated::swiglu, gated::swiglu_gate, gated::swiglu_up>;
static_assert(laws::holds<gate, sw::shape<5, 3>, sw::shape<5, 3>> > 8);
static_assert(laws::holds<gate, sw::shape<2, 4>, sw::shape<4>> > 8);
static_assert(laws::holds<gate, sw::shape<>, sw::shape<>> > 0);
static_assert(laws::holds<laws::customs<gated::swiglu_gate>, sw::shape<5, 3>, sw::shape<5, 3>, sw::shape<5, 3>> > 8);
static_assert(laws::holds<laws::customs<gated::swiglu_up>, sw::shape<5, 3>, sw::shape<5, 3>> > 8);
static_assert(laws::holds<laws::customs<sums::running>, sw::shape<5, 3>> > 8);
using row = sw::shape<3>;
static_assert(laws::holds<laws::customs<own::pairs>, row, row, row, row, row, row, row, sw::shape<1>> > 4);
constexpr sw::op_attr from_the_end{{1, 0, 0, 0, 0, 0}};
static_assert(laws::holds_case<laws::custom_case<laws::customs<sums::running>, from_the_end, sw::shape<4, 3>>> > 8);

// What a proof finds, placement by placement.
template <class Case>
constexpr bool finds(laws::failure what) {
  const auto& all = laws::on_one_axis<Case, 2>::all;
  const laws::reference alone = laws::solve<typename Case::used>(Case::value);
  if (alone.wrong == what) return true;
  for (int i = 0; i < all.count; ++i)
    if (laws::prove<typename Case::used>(Case::value, all.item[i], laws::on_one_axis<Case, 2>::mesh, alone) == what)
      return true;
  return false;
}
template <class Customs>
using on_rows = laws::custom_case<Customs, sw::op_attr{}, sw::shape<5, 3>>;
static_assert(finds<on_rows<laws::customs<sums::wrong_row>>>(laws::failure::value));
static_assert(finds<on_rows<laws::customs<sums::wrong_transpose, sums::running>>>(laws::failure::not_the_adjoint));
static_assert(finds<on_rows<laws::customs<sums::wrong_adjoint>>>(laws::failure::kernel_unknown));  // running is not named
static_assert(!finds<on_rows<laws::customs<sums::running>>>(laws::failure::value));

// The parts of a case: one device's values; each placement's proof by its number of ranks; on two axes pairs of what one axis takes.
using summed = on_rows<laws::customs<sums::running>>;
static_assert(laws::one_device<summed>::count == 1 && laws::one_device<summed>::value.wrong == laws::failure::none);
static_assert([] {
  const laws::reference& r = laws::one_device<summed>::value;
  laws::modp sum{};
  for (int i = 0; i < 15; ++i) {
    sum = i % 3 == 0 ? r.leaves[0][i] : sum + r.leaves[0][i];
    if (r.out[0][i] != sum) return false;
  }
  return r.has_cotangent[0];
}());
static_assert(laws::on_two_axes<summed, 3>::mesh.count() == 6 && laws::on_two_axes<summed, 3>::count > 0 &&
              laws::on_two_axes<summed, 3>::count <= laws::on_one_axis<summed, 2>::count);
static_assert(laws::proof<summed::operation, 2, summed, 0, laws::failure::none>::count == 1);
static_assert(laws::holds_case<summed> == laws::one_device<summed>::count + laws::on_one_axis<summed, 2>::count +
                                              laws::on_one_axis<summed, 3>::count + laws::on_two_axes<summed, 3>::count);

// Linear in one operand alone: the adjoint is held against that one, and only against it.
static_assert(laws::holds<laws::customs<quotients::quotient>, sw::shape<5, 3>, sw::shape<3>> > 8);
template <class Customs>
using on_two = laws::custom_case<Customs, sw::op_attr{}, sw::shape<5, 3>, sw::shape<5, 3>>;
static_assert(finds<on_two<laws::customs<quotients::doubled>>>(laws::failure::not_the_adjoint));

// A function of blocks holds as it is placed, uneven blocks too; what needs its neighbours' blocks does not.
static_assert(laws::holds_local_map<laws::customs<mapped::weigh>, mapped::map, sw::shape<4, 6>, sw::shape<6>>);
static_assert(laws::holds_local_map<laws::customs<mapped::weigh>, mapped::map, sw::shape<3, 7>, sw::shape<7>>);
static_assert(laws::mapped_case<laws::customs<mapped::sum_columns>, mapped::map, sw::shape<4, 6>, sw::shape<6>>::found ==
              laws::failure::value);

}  // namespace
