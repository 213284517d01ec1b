package read

import "github.com/ambit-k8s/ambit/internal/facts"

// installedWebhooks are those that Ambit made for the ClusterServiceVersions of a namespace, also where nothing is watched
// because there is none any more.
func (s *Store) installedWebhooks(namespace string) map[string]facts.InstalledWebhooks {
	out := map[string]facts.InstalledWebhooks{}

	for _, t := range s.webhooks {
		for key, r := range t.rows {
			if r.record.made != nil && r.record.operatorNamespace == namespace {
				out[key.Name] = *r.record.made
			}
		}
	}

	return out
}

// InstalledWebhooks are the webhook configurations that Ambit made for the ClusterServiceVersions of a namespace.
func (s *Store) InstalledWebhooks(namespace string) map[string]facts.InstalledWebhooks {
	s.mu.RLock()
	defer s.mu.RUnlock()

	return s.installedWebhooks(namespace)
}
