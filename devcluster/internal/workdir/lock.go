package workdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ErrLocked says that a running cluster has the folder.
var ErrLocked = errors.New("the folder is in use")

// Lock is held by the supervisor for as long as it lives. The kernel drops it
// when the process ends in whatever way, so unlike a file with a process
// number in it, it is never stale.
type Lock struct{ file *os.File }

// TryLock takes the lock, or fails with ErrLocked. It tries for a moment,
// because asking for the status takes the lock for a blink.
func (d Dir) TryLock() (*Lock, error) {
	return d.lockWithin(300 * time.Millisecond)
}

// Locked tells whether a cluster has the folder.
func (d Dir) Locked() (bool, error) {
	lock, err := d.lockWithin(0)
	if errors.Is(err, ErrLocked) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, lock.Release()
}

// WaitUnlocked waits until no cluster has the folder any more and returns the
// lock.
func (d Dir) WaitUnlocked(limit time.Duration) (*Lock, error) { return d.lockWithin(limit) }

// Release lets others use the folder. The file stays: removing it would let
// two processes hold locks on two files of the same name.
func (l *Lock) Release() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("releasing the lock: %w", err)
	}
	return nil
}

func (d Dir) lockWithin(limit time.Duration) (*Lock, error) {
	file, err := os.OpenFile(filepath.Join(d.root, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the cluster: %w", err)
	}
	deadline := time.Now().Add(limit)
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return &Lock{file: file}, nil
		case errors.Is(err, syscall.EINTR):
			continue
		case !errors.Is(err, syscall.EWOULDBLOCK):
			_ = file.Close()
			return nil, fmt.Errorf("locking the folder of the cluster: %w", err)
		case !time.Now().Before(deadline):
			_ = file.Close()
			return nil, fmt.Errorf("%s: %w", d.root, ErrLocked)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
