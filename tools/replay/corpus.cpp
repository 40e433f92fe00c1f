#include "replay/corpus.h"

#include <iterator>

namespace tilewright::replay {

std::vector<CorpusEntry> corpus(const Machine& machine) {
  std::vector<CorpusEntry> all;
  // The longest first, so that no thread is left alone with them at the end.
  for (std::vector<CorpusEntry> part :
       {network_entries(), nn_entries(), user_program_entries(), pair_entries(machine), product_entries(),
        stage_entries(), product_program_entries(), random_graph_entries()})
    all.insert(all.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
  return all;
}

}  // namespace tilewright::replay
