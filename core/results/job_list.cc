#include "core/results/job_list.h"

#include <utility>

#include "core/experiment/configuration.h"

namespace pelab::results {

JobList::JobList(std::vector<v1::JobRow> rows) {
  for (v1::JobRow& row : rows) AddRow(std::move(row));
}

void JobList::Add(v1::ListJobsResponse page) {
  rows_.reserve(rows_.size() + static_cast<std::size_t>(page.jobs_size()));
  for (v1::JobRow& row : *page.mutable_jobs()) AddRow(std::move(row));
  for (v1::Configuration& configuration : *page.mutable_configurations()) {
    templates_[configuration.configuration_id()] =
        std::move(*configuration.mutable_spec_template());
  }
}

void JobList::AddRow(v1::JobRow row) {
  if (!row.spec_json().empty()) {
    const std::int64_t next = -1 - static_cast<std::int64_t>(own_ids_.size());
    const auto [own, is_new] =
        own_ids_.emplace(experiment::TemplateOf(row.spec_json(), row.seed()), next);
    if (is_new) templates_[own->second] = own->first;
    row.set_configuration_id(own->second);
    row.clear_spec_json();
  }
  rows_.push_back(std::move(row));
}

std::string JobList::SpecOf(const v1::JobRow& row) const {
  const auto found = templates_.find(row.configuration_id());
  return found == templates_.end() ? "" : experiment::FillTemplate(found->second, row.seed());
}

}  // namespace pelab::results
