@0x8c67f0a1dc2777fc;
# The whole protocol between processes. A frame is a fixed prefix (transport/src/wire/frame.hpp),
# one of the structs below as its header, and raw payload bytes that are never inside a struct.
# Field numbers are never reused; a change that an older program cannot read raises the version in
# transport/src/wire/frame.hpp. Both ends also compare a hash of this file and refuse each other
# when it differs.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("holmes::schema");

# --- Link: hello, refusal, flow control -----------------------------------------------------------

enum Purpose {
  control @0;  # Control messages, credits and goodbyes.
  bulk @1;     # Chunks of payloads.
}

# First frame in both directions on every socket.
struct Hello {
  schemaHash @0 :UInt64;
  job @1 :Text;  # At most 200 bytes.
  host @2 :UInt32;
  nic @3 :UInt32;
  epoch @4 :UInt64;
  purpose @5 :Purpose;
  linkNonce @6 :UInt64;  # The same on the two sockets of one link.
}

# Instead of a hello: why the peer is refused. Later, on a control socket: why the link ends.
struct Refusal {
  code @0 :UInt8;
  reason @1 :Text;  # At most 1000 bytes.
}

# Header of one control message; the message itself is the payload.
struct Control {
  checksum @0 :UInt64;  # XXH3-64 of the payload.
}

# Names one bulk payload; see transport/message.hpp.
struct Tag {
  generation @0 :UInt64;
  step @1 :UInt64;
  kind @2 :UInt8;
  stage @3 :UInt32;
  microBatch @4 :UInt32;
  layer @5 :UInt32;
  node @6 :UInt32;
  source @7 :UInt32;
  destination @8 :UInt32;
}

# The receiver has reserved a buffer of so many bytes for this tag.
struct Credit {
  tag @0 :Tag;
  bytes @1 :UInt64;
}

# Header of one chunk of a bulk payload.
struct Chunk {
  tag @0 :Tag;
  dtype @1 :UInt8;
  dimensions @2 :List(UInt32);  # At most 8.
  offset @3 :UInt64;            # Of this chunk in the payload.
  total @4 :UInt64;             # Bytes of the payload.
  checksum @5 :UInt64;          # XXH3-64 of this chunk's bytes, if checksummed.
  checksummed @6 :Bool;
}

# --- Messages between actors (payloads of control frames) -----------------------------------------
# Owned by actors/: add structs below this line only.
