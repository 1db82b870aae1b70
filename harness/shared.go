package harness

import (
	"sync"

	"ezat.io/chat-completions/harness/internal/abi"
)

// Bounds of what guests can make the host keep.
const (
	sharedBytesMax  = 64 << 20
	queuesMax       = 1024
	queueItemsMax   = 65536
	queueBytesMax   = 16 << 20
	sharedEntrySize = 64 // what an entry costs besides its bytes
)

// shared is what all VMs of a host have in common: values with
// compare-and-swap numbers, and queues.
type shared struct {
	mu     sync.Mutex
	values map[string]sharedValue
	cas    uint32
	bytes  int
	queues []*queue // by id-1
}

type sharedValue struct {
	data string
	cas  uint32
}

// queue is a shared queue and the context that is told of its items.
type queue struct {
	vm, name string
	items    []string
	bytes    int
	owner    *vm
	root     uint32
}

func (s *shared) get(key string) (string, uint32, abi.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.values[key]
	if !ok {
		return "", 0, abi.NotFound
	}
	return v.data, v.cas, abi.OK
}

// set stores a value. A cas of 0 overwrites; any other must be the value's own,
// but a key that is not there yet takes any.
func (s *shared) set(key, value string, cas uint32) abi.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.values[key]
	if ok && cas != 0 && cas != old.cas {
		return abi.CASMismatch
	}
	size := s.bytes + len(value) - len(old.data)
	if !ok {
		size += len(key) + sharedEntrySize
	}
	if size > sharedBytesMax {
		return abi.InternalFailure
	}
	s.bytes = size
	if s.cas++; s.cas == 0 {
		s.cas = 1
	}
	if s.values == nil {
		s.values = map[string]sharedValue{}
	}
	s.values[key] = sharedValue{value, s.cas}
	return abi.OK
}

// register makes or opens a queue; the last to register is told of items.
func (s *shared) register(vmID, name string, owner *vm, root uint32) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, q := range s.queues {
		if q.vm == vmID && q.name == name {
			q.owner, q.root = owner, root
			return uint32(i + 1)
		}
	}
	if len(s.queues) >= queuesMax {
		return 0
	}
	s.queues = append(s.queues, &queue{vm: vmID, name: name, owner: owner, root: root})
	return uint32(len(s.queues))
}

func (s *shared) resolve(vm, name string) (uint32, abi.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, q := range s.queues {
		if q.vm == vm && q.name == name {
			return uint32(i + 1), abi.OK
		}
	}
	return 0, abi.NotFound
}

func (s *shared) queue(id uint32) *queue {
	if id == 0 || int64(id) > int64(len(s.queues)) {
		return nil
	}
	return s.queues[id-1]
}

// enqueue adds an item and returns who is to be told.
func (s *shared) enqueue(id uint32, value string) (owner *vm, root uint32, st abi.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queue(id)
	if q == nil {
		return nil, 0, abi.NotFound
	}
	if len(q.items) >= queueItemsMax || q.bytes+len(value) > queueBytesMax {
		return nil, 0, abi.InternalFailure
	}
	q.items = append(q.items, value)
	q.bytes += len(value)
	return q.owner, q.root, abi.OK
}

func (s *shared) dequeue(id uint32) (string, abi.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queue(id)
	if q == nil {
		return "", abi.NotFound
	}
	if len(q.items) == 0 {
		return "", abi.Empty
	}
	value := q.items[0]
	q.items = q.items[1:]
	q.bytes -= len(value)
	return value, abi.OK
}

// SharedData returns a value that guests share, and whether it is there.
func (h *Host) SharedData(key string) (string, bool) {
	v, _, st := h.shared.get(key)
	return v, st == abi.OK
}
