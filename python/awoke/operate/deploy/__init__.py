"""Files with which an app is run and watched: dashboard, alerts, manifests, units; and the check before production."""
