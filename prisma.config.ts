import { defineConfig } from 'prisma/config';

// The CLI asks for a native schema engine before every command and would download one. `generate` and
// `validate` never run it, so any existing executable satisfies the check and nothing is fetched.
process.env.PRISMA_SCHEMA_ENGINE_BINARY ??= process.execPath;

export default defineConfig({
  schema: 'prisma/schema.prisma',
  migrations: { path: 'prisma/migrations' },
});
