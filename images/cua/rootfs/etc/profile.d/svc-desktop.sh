. /usr/lib/svc/desktop/environment
