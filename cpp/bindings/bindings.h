/*!
 * \file bindings/bindings.h
 * \brief What the files of the extension share: registration, and the border's two conversions.
 */
#ifndef TLP_TVM_BINDINGS_BINDINGS_H_
#define TLP_TVM_BINDINGS_BINDINGS_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <string>

#include "core/encoder.h"
#include "core/primitive.h"

namespace tlp_tvm {
namespace bindings {

/*! \brief The embedding a caller wants filled: C-contiguous, so that NumPy never copies it. */
using Embedding = pybind11::array_t<float, pybind11::array::c_style>;

void RegisterBreeding(pybind11::module_& module);
void RegisterLayout(pybind11::module_& module);
void RegisterLoops(pybind11::module_& module);
void RegisterNetwork(pybind11::module_& module);
void RegisterRecords(pybind11::module_& module);
void RegisterStates(pybind11::module_& module);
void RegisterTraces(pybind11::module_& module);

/*! \return The record form of a program, as Python lists. */
pybind11::list StepsOf(const PrimitiveSequence& sequence, const Vocabulary& vocabulary);

/*! \return {"sequences", "cut_sequences", "cut_rows", "cut_columns", "unknown_kinds",
 * "unknown_tokens"}. */
pybind11::dict ReportOf(const EncodingReport& report, const Vocabulary& vocabulary);

/*! \throws LayoutError unless the encoder is of the framework whose programs these are. */
void RequireFramework(const Encoder& encoder, const Vocabulary& programs);

/*!
 * \return Where `count` embeddings of programs go in `out`.
 * \throws LayoutError unless the encoder is of the programs' framework.
 * \throws std::invalid_argument unless `out` is writable with shape (count, L, E).
 */
float* EmbeddingOf(Embedding& out, std::size_t count, const Encoder& encoder,
                   const Vocabulary& programs);

}  // namespace bindings
}  // namespace tlp_tvm

#endif  // TLP_TVM_BINDINGS_BINDINGS_H_
