#include "metaschedule/live_values.h"

#include "metaschedule/kinds.h"

namespace tlp_tvm {
namespace metaschedule {
namespace {

constexpr char kGraphOf[] = "ffi.ToJSONGraphString";

}  // namespace

const std::uint64_t ValueReader::kMost = kMaxOperands;

ValueReader::ValueReader(const ffi::Library* library)
    : library_(library),
      block_(library->IndexOf("s_tir.SBlockRV")),
      loop_(library->IndexOf("s_tir.LoopRV")),
      variable_(library->IndexOf("ir.Var")),
      integer_(library->IndexOf("ir.IntImm")),
      real_(library->IndexOf("ir.FloatImm")),
      integer_value_(library, "ir.IntImm", "value"),
      real_value_(library, "ir.FloatImm", "value"),
      maps_(library),
      graph_of_(library->FunctionOf(kGraphOf)) {}

void ValueReader::RefuseStranger(const ffi::Any& item) const {
  throw TraceFault("expected a random variable of an instruction before, found another " +
                   library_->NameOf(item));
}

void ValueReader::RefuseList(const ffi::Any& list, const char* what) const {
  if (list.type_index != ffi::kArray) {
    throw TraceFault(std::string("expected ") + what + " to be an Array, found " +
                     library_->NameOf(list));
  }
  throw TraceFault(std::string("expected ") + what + " to have at most " +
                   std::to_string(kMaxOperands) + " items, found " +
                   std::to_string(ffi::SequenceOf(list.object).size));
}

Value ValueReader::ReadOther(const ffi::Any& item) const {
  const std::int32_t type = item.type_index;
  if (ffi::IsText(item)) return {ValueForm::kText, 0, 0, 0, ffi::TextOf(item)};
  if (type == ffi::kNone) return {};
  if (type == ffi::kFloat) return Real(item.real);
  if (type == real_) return Real(real_value_.Read(item.object).real);
  if (type == ffi::kArray) return {ValueForm::kList, 0, ListOf(item, "a list").size, 0, {}};
  if (type == ffi::kMap) return {ValueForm::kMapping, 0, maps_.SizeOf(item), 0, {}};
  if (type >= ffi::kFirstObject) return {ValueForm::kGraph, 0, 0, 0, {}};
  throw TraceFault("expected a number, text, list or object, found " + library_->NameOf(item));
}

void ValueReader::Append(const ffi::Any& item, int depth, LiveScope* scope) const {
  if (depth > kMaxDepth) throw TraceFault("expected lists in lists to end, found them too deep");
  std::vector<Value>* const values = &scope->flat;
  const std::size_t at = values->size();
  values->push_back(Read(item, *scope));
  switch ((*values)[at].form) {
    case ValueForm::kGraph: {
      const ffi::Any args[] = {item, {}};
      const ffi::Any graph = library_->Call(graph_of_, kGraphOf, args, 2);
      scope->texts.push_back(PlainGraph(ffi::TextOf(graph)));
      library_->Release(graph);
      (*values)[at].text = scope->texts.back();
      return;
    }
    case ValueForm::kList: {
      const ffi::Sequence& list = ListOf(item, "a list");
      for (std::int64_t i = 0; i < list.size; ++i) Append(list.items[i], depth + 1, scope);
      break;
    }
    case ValueForm::kMapping:
      AppendMapping(item, depth, scope);
      break;
    default:
      return;
  }
  (*values)[at].inside = static_cast<std::uint32_t>(values->size() - at - 1);
  if ((*values)[at].form == ValueForm::kMapping) SortMapping(at, values);
}

void ValueReader::AppendMapping(const ffi::Any& map, int depth, LiveScope* scope) const {
  MapPairs pairs;
  maps_.Read(map, &pairs);
  for (const MapPair& pair : pairs) {
    for (const ffi::Any& part : {pair.key, pair.value}) {
      if (ffi::IsText(part)) {
        // A short text lies in `part`, which goes.
        scope->texts.emplace_back(ffi::TextOf(part));
        scope->flat.push_back({ValueForm::kText, 0, 0, 0, scope->texts.back()});
      } else {
        Append(part, depth + 1, scope);
      }
    }
  }
}

}  // namespace metaschedule
}  // namespace tlp_tvm
