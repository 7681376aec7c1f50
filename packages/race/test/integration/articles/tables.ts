import type { ArticleName } from './article-code.ts'

/** The tables of all five articles, made once. */
export const createTables = `
  CREATE TABLE usage (user_id text PRIMARY KEY, used int NOT NULL);
  CREATE TABLE user_image (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, user_id text NOT NULL, byte_size int NOT NULL
  );
  CREATE TABLE variant (id int PRIMARY KEY, stock int NOT NULL);
  CREATE TABLE stock_movement (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, variant_id int NOT NULL, change int NOT NULL
  );
  CREATE TABLE webhook (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, external_id text NOT NULL
  );
  CREATE TABLE unique_webhook (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, external_id text NOT NULL UNIQUE
  );
  CREATE TABLE job (id int PRIMARY KEY, worker text);
`

/** What is there before each schedule. */
export const seeds: Readonly<Record<ArticleName, string>> = {
  quota: `TRUNCATE usage; INSERT INTO usage VALUES ('ann', 99)`,
  upload: `TRUNCATE user_image; INSERT INTO user_image (user_id, byte_size) VALUES ('ann', 60)`,
  stock: `TRUNCATE variant, stock_movement; INSERT INTO variant VALUES (1, 10)`,
  webhook: `TRUNCATE webhook, unique_webhook`,
  job: `TRUNCATE job; INSERT INTO job VALUES (1), (2)`,
}
