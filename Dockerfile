# syntax=docker/dockerfile:1
# The server of Lango, from a clone. See docs/deploying.md.
#
#   docker build -t lango .
#   docker run --init -p 18789:18789 -v lango:/data -e LANGO_TOKENS=… lango
#
# Other vendors' SDKs and the PostgreSQL driver are added by name: --build-arg PACKAGES="openai pg"

FROM node:24.18.0-bookworm-slim@sha256:6f7b03f7c2c8e2e784dcf9295400527b9b1270fd37b7e9a7285cf83b6951452d AS build
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY . .
RUN node scripts/build.mjs --no-check

FROM node:24.18.0-bookworm-slim@sha256:6f7b03f7c2c8e2e784dcf9295400527b9b1270fd37b7e9a7285cf83b6951452d AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# No script of a package is needed: the SQLite driver comes with its binary.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund
ARG PACKAGES=""
RUN if [ -n "$PACKAGES" ]; then npm install --no-save --omit=dev --ignore-scripts --no-audit --no-fund $PACKAGES; fi

FROM node:24.18.0-bookworm-slim@sha256:6f7b03f7c2c8e2e784dcf9295400527b9b1270fd37b7e9a7285cf83b6951452d
ENV NODE_ENV=production \
    LANGO_HOST=0.0.0.0 \
    LANGO_PORT=18789 \
    LANGO_STORE=sqlite:/data/lango.db
COPY --from=packages /app/node_modules /app/node_modules
COPY --from=build /src/package.json /app/package.json
COPY --from=build /src/dist /app/dist
COPY --from=build /src/docs /app/docs
# The database is in a volume that belongs to the user of the server. /agent is for a configuration and agent files.
RUN mkdir /data /agent && chown node:node /data /agent
USER node
WORKDIR /agent
VOLUME /data
EXPOSE 18789
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.LANGO_PORT}/api/health`).then(answer => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
# The server hands its runs over on SIGTERM, within ten seconds: give it more (docker stop -t 20).
STOPSIGNAL SIGTERM
ENTRYPOINT ["node", "/app/dist/cli/main.js"]
CMD ["serve"]
