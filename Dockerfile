# syntax=docker/dockerfile:1
# The version that package-lock.json has for development and tests, in full: an image built again is the same.
FROM node:24.21.0-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The embedded Postgres is an optional dependency for laptops; a pod is given DATABASE_URL.
RUN npm ci --omit=dev --omit=optional

FROM node:24.21.0-bookworm-slim
# docker build --build-arg BUILD_COMMIT=$(git rev-parse HEAD) . lets /metrics and the log say which commit runs.
ARG BUILD_COMMIT
ENV NODE_ENV=production HOST=0.0.0.0 INGEST_HOST=0.0.0.0 BUILD_COMMIT=$BUILD_COMMIT
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json ./
COPY sql sql
COPY src src
USER node
EXPOSE 3000 3001
# The ingest port opens in every role, the public one only with the role api.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.INGEST_PORT || 3001}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# node itself, not npm: npm does not pass signals on. The new objects of the heap get 32 MB instead of 128, as with npm start.
CMD ["node", "--max-semi-space-size=16", "src/main.ts"]
