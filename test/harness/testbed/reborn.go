package testbed

// Reborn kills Ambit, starts it again, and waits until one of its controllers works: if it ended before that, nothing was tested.
func (w *World) Reborn(controller string) {
	w.Helper()

	if err := w.Manager.Kill(); err != nil {
		w.Fatalf("killing the manager: %v", err)
	}

	if err := w.Manager.Start(); err != nil {
		w.Fatalf("starting the manager: %v", err)
	}

	w.Eventually("Ambit works again", func() error { return w.Manager.Works(controller) })
}
