#include "core/db/row_columns.h"

#include <cstdint>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "core/base/strings.h"

namespace pelab::db {
namespace {

using google::protobuf::FieldDescriptor;

std::string ColumnName(const FieldDescriptor& field) {
  constexpr std::string_view kUnit = "_ms";
  const std::string& name = field.name();
  return name.ends_with("_at_ms") ? name.substr(0, name.size() - kUnit.size()) : name;
}

// The number of the value that is called `name` in SQL, "running" for JOB_STATE_RUNNING; 0 if there
// is none.
int EnumNumber(const google::protobuf::EnumDescriptor& values, std::string name) {
  constexpr std::string_view kZero = "UNSPECIFIED";
  const std::string& zero = values.value(0)->name();
  absl::AsciiStrToUpper(&name);
  const auto* value =
      values.FindValueByName(Concat(zero.substr(0, zero.size() - kZero.size()), name));
  return value == nullptr ? 0 : value->number();
}

}  // namespace

RowColumns::RowColumns(const google::protobuf::Descriptor* row,
                       const std::set<std::string>& without) {
  for (int i = 0; i < row->field_count(); ++i) {
    const FieldDescriptor* field = row->field(i);
    if (field->is_repeated() || field->message_type() || without.contains(field->name())) continue;
    sql_ += Concat(fields_.empty() ? "" : ", ", ColumnName(*field));
    fields_.push_back(field);
  }
}

std::size_t RowColumns::Read(const RawStatement& query, google::protobuf::Message& row) const {
  const google::protobuf::Reflection& set = *row.GetReflection();
  std::size_t bytes = 0;
  int column = -1;
  for (const FieldDescriptor* field : fields_) {
    ++column;  // a NULL reads as 0 or "", which is what a field without presence has if it is unset
    if (field->has_presence() && query.IsNull(column)) continue;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        set.SetInt32(&row, field, static_cast<std::int32_t>(query.Integer(column)));
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        set.SetInt64(&row, field, query.Integer(column));
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        set.SetUInt64(&row, field, static_cast<std::uint64_t>(query.Integer(column)));
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        set.SetDouble(&row, field, query.Real(column));
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        set.SetBool(&row, field, query.Integer(column) != 0);
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        set.SetEnumValue(&row, field, EnumNumber(*field->enum_type(), query.Text(column)));
        break;
      default: {
        std::string text = query.Text(column);
        bytes += text.size();
        set.SetString(&row, field, std::move(text));
      }
    }
  }
  return bytes;
}

}  // namespace pelab::db
