package envoy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// adminClient asks the administration interface; it is never far away.
var adminClient = &http.Client{Timeout: 10 * time.Second}

// Ask asks the administration interface and wants a 200. path may have a query.
func (e *Envoy) Ask(ctx context.Context, method, path string) ([]byte, error) {
	return e.admin(ctx, method, path)
}

// admin asks the administration interface and wants a 200.
func (e *Envoy) admin(ctx context.Context, method, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, e.Admin+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := adminClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, strings.TrimSpace(string(body)))
	}
	return body, nil
}

// ListenerAddr returns the address of a listener as HOST:PORT.
func (e *Envoy) ListenerAddr(ctx context.Context, name string) (string, error) {
	body, err := e.admin(ctx, http.MethodGet, "/listeners?format=json")
	if err != nil {
		return "", err
	}
	var list struct {
		Statuses []struct {
			Name    string `json:"name"`
			Address struct {
				Socket struct {
					Address string `json:"address"`
					Port    int    `json:"port_value"`
				} `json:"socket_address"`
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return "", err
	}
	for _, l := range list.Statuses {
		if l.Name == name && l.Address.Socket.Port != 0 {
			return fmt.Sprintf("%s:%d", l.Address.Socket.Address, l.Address.Socket.Port), nil
		}
	}
	return "", fmt.Errorf("the listener %s is not there yet", name)
}

// Stats returns Envoy's counters and gauges by name. Metrics of the module
// are called wasmcustom.ezat….
func (e *Envoy) Stats(ctx context.Context) (map[string]int64, error) {
	body, err := e.admin(ctx, http.MethodGet, "/stats")
	if err != nil {
		return nil, err
	}
	stats := map[string]int64{}
	for line := range strings.Lines(string(body)) {
		name, text, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue
		}
		if value, err := strconv.ParseInt(text, 10, 64); err == nil {
			stats[name] = value // histograms and texts are not numbers
		}
	}
	return stats, nil
}

// Memory is how much memory Envoy uses, in bytes.
type Memory struct {
	Allocated int64 // by Envoy's own code, buffers included; without the VMs
	Heap      int64 // taken from the system for it
	Resident  int64 // of the whole process, VMs included; Linux only
	Peak      int64 // the most that Resident has been
}

// Memory reads the use of memory.
func (e *Envoy) Memory(ctx context.Context) (Memory, error) {
	body, err := e.admin(ctx, http.MethodGet, "/memory")
	if err != nil {
		return Memory{}, err
	}
	var counted struct {
		Allocated int64 `json:"allocated,string"`
		Heap      int64 `json:"heap_size,string"`
	}
	if err := json.Unmarshal(body, &counted); err != nil {
		return Memory{}, err
	}
	m := Memory{Allocated: counted.Allocated, Heap: counted.Heap}
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", e.PID))
	if errors.Is(err, os.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return Memory{}, err
	}
	defer status.Close()
	lines := bufio.NewScanner(status)
	for lines.Scan() {
		var kilobytes int64
		if n, _ := fmt.Sscanf(lines.Text(), "VmRSS: %d kB", &kilobytes); n == 1 {
			m.Resident = kilobytes << 10
		}
		if n, _ := fmt.Sscanf(lines.Text(), "VmHWM: %d kB", &kilobytes); n == 1 {
			m.Peak = kilobytes << 10
		}
	}
	return m, lines.Err()
}
