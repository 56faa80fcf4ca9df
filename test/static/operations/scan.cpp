// SPDX-License-Identifier: Apache-2.0
// Running sums: the proof of rows, kernel and adjoint under every placement; the adjoint is the transpose. What einsum reads.
#include <rules.hpp>
#include <shardwise/graph/functions/einsum.hpp>
#include <shardwise/laws/cases.hpp>
#include <shardwise/operations/scan/host.hpp>

namespace {

namespace laws = sw::laws;

constexpr sw::op_attr along(int dim, int back) { return sw::pack_attributes(sw::scan_attributes{dim, back}); }
template <sw::op_attr A, class X>
inline constexpr int proved = laws::holds_case<laws::custom_case<laws::customs<sw::custom::cumsum>, A, X>>;
static_assert(proved<along(0, 0), sw::shape<5, 3>> > 8);
static_assert(proved<along(1, 0), sw::shape<3, 4, 2>> > 8);
static_assert(proved<along(2, 1), sw::shape<3, 2, 4>> > 8);

constexpr bool reads(std::string_view text) { return sw::detail::parsed_equation(text).well_formed; }
static_assert(reads("bhqd,bhkd->bhqk") && reads("ij->ji") && reads(" i j , j k -> i k ") && reads("ij,ij->") &&
              reads("i->"));
static_assert(!reads("ij,jk") && !reads("ii->i") && !reads("ij->ijj") && !reads("ij,jk->il") && !reads("a,b,c->abc"));
static_assert(!reads("ij->ji->ij") && !reads("i1->i") && !reads("...i->i") && !reads("ij-ji") && !reads(""));
static_assert(sw::detail::labels_of(sw::detail::parsed_equation("bhqd,bhkd->bhqk")) ==
              sw::op_attr{{0x4321, 0x4521, 0x5321, 0, 0, 0}});
static_assert(sw::detail::labels_of(sw::detail::parsed_equation("abcdefgh,ghefijkl->abcdijkl")).v[2] == 0xCBA94321);
static_assert(sw::detail::summed_alone(sw::detail::parsed_equation("abc,cd->d"), 0) == 0b011);

}  // namespace
