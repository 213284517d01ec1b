package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/ambit-k8s/ambit/devcluster/internal/workdir"
)

// ErrNoAnswer says that no supervisor answered.
var ErrNoAnswer = errors.New("the cluster does not answer")

// answerTimeout is how long a supervisor may take to answer what takes it no
// time, on a machine that is busy with other things.
const answerTimeout = 30 * time.Second

// Status asks a running cluster how it is.
func Status(ctx context.Context, dir workdir.Dir) (workdir.State, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return send(ctx, dir, request{Verb: verbStatus})
}

// Stop asks a running cluster to stop. It does not wait for the end.
func Stop(ctx context.Context, dir workdir.Dir) (workdir.State, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return send(ctx, dir, request{Verb: verbStop})
}

// Restart asks a running cluster to restart a component, and waits.
func Restart(ctx context.Context, dir workdir.Dir, component string, kill bool) (workdir.State, error) {
	return send(ctx, dir, request{Verb: verbRestart, Component: component, Kill: kill})
}

// Save asks a running cluster to remember under a name what it stores, and waits.
func Save(ctx context.Context, dir workdir.Dir, name string) error {
	_, err := send(ctx, dir, request{Verb: verbSave, Name: name})
	return err
}

// Reset asks a running cluster to put back what it remembers under a name, and waits.
func Reset(ctx context.Context, dir workdir.Dir, name string) error {
	_, err := send(ctx, dir, request{Verb: verbReset, Name: name})
	return err
}

// send tries for a while to reach the supervisor, which takes the lock a
// moment before it listens.
func send(ctx context.Context, dir workdir.Dir, ask request) (workdir.State, error) {
	connection, err := dial(ctx, dir)
	if err != nil {
		return workdir.State{}, fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	defer func() { _ = connection.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer stop()

	var answer response
	if err := json.NewEncoder(connection).Encode(ask); err != nil {
		return workdir.State{}, fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	if err := json.NewDecoder(connection).Decode(&answer); err != nil {
		return workdir.State{}, fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	if answer.Error != "" {
		return answer.State, errors.New(answer.Error)
	}
	return answer.State, nil
}

func dial(ctx context.Context, dir workdir.Dir) (net.Conn, error) {
	deadline := time.Now().Add(2 * time.Second)
	for {
		path, err := dir.Socket()
		if err == nil {
			var connection net.Conn
			if connection, err = new(net.Dialer).DialContext(ctx, "unix", path); err == nil {
				return connection, nil
			}
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return nil, err //nolint:wrapcheck // the only caller wraps it
		}
		time.Sleep(50 * time.Millisecond)
	}
}
