//go:build wasip1

package guest

import "unsafe"

//go:wasmimport env proxy_replace_header_map_value
func replaceHeader(m uint32, key unsafe.Pointer, keySize uint32, value unsafe.Pointer, valueSize uint32) uint32

//go:wasmimport env proxy_remove_header_map_value
func removeHeader(m uint32, key unsafe.Pointer, keySize uint32) uint32

//go:wasmimport env proxy_get_header_map_pairs
func getPairs(m uint32, pairs, pairsSize unsafe.Pointer) uint32

//go:wasmimport env proxy_get_property
func getProperty(path unsafe.Pointer, pathSize uint32, value, valueSize unsafe.Pointer) uint32

//go:wasmimport env proxy_set_property
func setProperty(path unsafe.Pointer, pathSize uint32, value unsafe.Pointer, valueSize uint32) uint32

//go:wasmimport env proxy_define_metric
func defineMetric(kind uint32, name unsafe.Pointer, nameSize uint32, metric unsafe.Pointer) uint32

//go:wasmimport env proxy_increment_metric
func incrementMetric(metric uint32, offset int64) uint32

//go:wasmimport env proxy_record_metric
func recordMetric(metric uint32, value uint64) uint32

func text(s string) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.StringData(s)), uint32(len(s))
}

// Call is a host call of the filter's, made once and again; nil for a name that
// there is not.
func Call(name string) func() (status uint32) {
	var value, size uint64
	v, n := unsafe.Pointer(&value), unsafe.Pointer(&size)
	key, keySize := text("x-bench-key")
	data, dataSize := text("some value of a header")
	switch name {
	case "get-header":
		path, pathSize := text(":path")
		return func() uint32 { return getHeader(requestHeaders, path, pathSize, v, n) }
	case "get-pairs":
		return func() uint32 { return getPairs(requestHeaders, v, n) }
	case "set-header":
		return func() uint32 { return replaceHeader(requestHeaders, key, keySize, data, dataSize) }
	case "remove-header":
		return func() uint32 { return removeHeader(requestHeaders, key, keySize) }
	case "get-property":
		path, pathSize := text("connection\x00id")
		return func() uint32 { return getProperty(path, pathSize, v, n) }
	case "set-property":
		path, pathSize := text("ezat.usage")
		line, lineSize := text(`{"model":"anthropic/claude-sonnet-5-5","stream":false,"status":200,"outcome":"ok"}`)
		return func() uint32 { return setProperty(path, pathSize, line, lineSize) }
	case "count", "observe":
		var id uint32
		kind := uint32(0)
		if name == "observe" {
			kind = 2
		}
		label, labelSize := text("bench." + name)
		if defineMetric(kind, label, labelSize, unsafe.Pointer(&id)) != 0 {
			return nil
		}
		if kind == 0 {
			return func() uint32 { return incrementMetric(id, 1) }
		}
		return func() uint32 { return recordMetric(id, 12) }
	case "set-buffer":
		return func() uint32 { return setBuffer(requestBody, 0, bufferEnd, data, dataSize) }
	case "get-buffer":
		return func() uint32 { return getBuffer(requestBody, 0, 1<<20, v, n) }
	}
	return nil
}
