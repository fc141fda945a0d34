{{- /* What selects the pods of a component. Takes a dict with `release` and `component`. */ -}}
{{- define "svc.selector" -}}
{"app.kubernetes.io/name": "svc", "app.kubernetes.io/instance": {{ quote .release }}, "app.kubernetes.io/component": {{ quote .component }}}
{{- end -}}

{{- /* Environment variables. Takes a dict of settings. */ -}}
{{- define "svc.env" }}
{{- range $name, $value := . }}
            - name: {{ $name }}
              value: {{ $value | toString | quote }}
{{- end }}
{{- end -}}

{{- /* Probes of a component with an HTTPS listener. A component that drains is not ready while requests still reach it, for
SVC_DRAIN_NOTICE_SECONDS. */ -}}
{{- define "svc.probes" }}
          startupProbe:
            httpGet: { path: /healthz, port: https, scheme: HTTPS }
            periodSeconds: 2
            failureThreshold: 60
          livenessProbe:
            httpGet: { path: /healthz, port: https, scheme: HTTPS }
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            httpGet: { path: /readyz, port: https, scheme: HTTPS }
            periodSeconds: 1
            timeoutSeconds: 2
            failureThreshold: 2
{{- end -}}

{{- /* The start of the specification of a pod that needs no privileges. Takes a dict with `root`, `selector` and
`graceSeconds`. */ -}}
{{- define "svc.unprivileged" }}
      # Kubernetes would add variables such as SVC_CONTROL_PLANE_PORT, and svc refuses settings that it does not know.
      enableServiceLinks: false
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: {{ .graceSeconds }}
      imagePullSecrets: {{ template "svc.pullSecrets" .root }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile:
          type: RuntimeDefault
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {{ template "svc.selector" .selector }}
      volumes:
        - name: data
          emptyDir:
            sizeLimit: 256Mi
        - name: tls
          secret:
            secretName: {{ .root.Values.secrets.tls }}
{{- end -}}

{{- /* What the container of such a pod may do, and its files. */ -}}
{{- define "svc.unprivilegedContainer" }}
          securityContext:
            allowPrivilegeEscalation: false
            capabilities:
              drop: [ALL]
            readOnlyRootFilesystem: true
          volumeMounts:
            - name: data
              mountPath: /var/lib/svc
            - name: tls
              mountPath: /etc/svc/tls
              readOnly: true
{{- end -}}

{{- /* What the world reaches a component by, and how many of its pods may be away. Takes a dict with `root`, `component`,
`selector` and `service`. */ -}}
{{- define "svc.public" }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .root.Release.Name }}-{{ .component }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {{ template "svc.selector" .selector }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .root.Release.Name }}-{{ .component }}
  annotations: {{ toJson .service.annotations }}
spec:
  type: {{ .service.type }}
  selector: {{ template "svc.selector" .selector }}
  ports:
    - name: https
      port: 443
      targetPort: https
{{- end -}}

{{- define "svc.pullSecrets" -}}
[{{ range $index, $name := .Values.imagePullSecrets }}{{ if $index }}, {{ end }}{"name": {{ quote $name }}}{{ end }}]
{{- end -}}

{{- /* Other settings give the pods another digest, so that they are replaced. */ -}}
{{- define "svc.digest" -}}
{{ list .Values.baseUrl .Values.runtimeUrl .Values.s3 .Values.settings | toJson | sha256sum | quote }}
{{- end -}}
