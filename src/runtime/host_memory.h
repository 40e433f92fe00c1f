// What the system knows of the host's memory: whether a pointer of another may be read, or written, at all.
#pragma once

#include <tilewright/base/error.h>

#include <cstddef>

namespace tilewright::runtime {

enum class HostUse : unsigned char { read, write };

// A Failure where part of [address, address + bytes) is no memory of this process, or may not be used so: it
// was unmapped, is a device's, is read-only. It cannot know of memory that a heap has taken back. It reads
// the table of the process's mappings, which takes about 50 us; a system that shows none has no objection.
Status check_host_memory(const void* address, std::size_t bytes, HostUse use);

}  // namespace tilewright::runtime
