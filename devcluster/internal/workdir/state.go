package workdir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Phase is where a cluster is in its life.
type Phase string

// The phases of a cluster.
const (
	Starting Phase = "starting"
	Running  Phase = "running"
	Stopping Phase = "stopping"
	Stopped  Phase = "stopped"
	Failed   Phase = "failed"
)

// State is what the supervisor tells about its cluster.
type State struct {
	Phase      Phase       `json:"phase"`
	Reason     string      `json:"reason,omitempty"`
	PID        int         `json:"pid"`
	Since      time.Time   `json:"since"`
	Server     string      `json:"server,omitempty"`
	Kubeconfig string      `json:"kubeconfig,omitempty"`
	Components []Component `json:"components,omitempty"`
	// Saved are the names under which the cluster remembers what it stored.
	Saved []string `json:"saved,omitempty"`
}

// Component is the state of one process of the cluster.
type Component struct {
	Name     string    `json:"name"`
	PID      int       `json:"pid"`
	Since    time.Time `json:"since"`
	Restarts int       `json:"restarts"`
	Log      string    `json:"log"`
}

// SaveState records the state, for those who ask when the cluster is gone.
func (d Dir) SaveState(state State) error {
	content, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the state of the cluster: %w", err)
	}
	temporary := d.stateFile() + ".new"
	if err := os.WriteFile(temporary, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("recording the state of the cluster: %w", err)
	}
	if err := os.Rename(temporary, d.stateFile()); err != nil {
		return fmt.Errorf("recording the state of the cluster: %w", err)
	}
	return nil
}

// LoadState reads the record. Without one the cluster is taken as stopped.
func (d Dir) LoadState() (State, error) {
	content, err := os.ReadFile(d.stateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return State{Phase: Stopped}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("reading the state of the cluster: %w", err)
	}
	var state State
	if err := json.Unmarshal(content, &state); err != nil {
		return State{}, fmt.Errorf("reading the state of the cluster in %s: %w", d.stateFile(), err)
	}
	return state, nil
}

func (d Dir) stateFile() string { return filepath.Join(d.root, "state.json") }
