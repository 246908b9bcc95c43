// The rules for the pages' scripts, which run in browsers, and for the scripts that Node runs.
import js from '@eslint/js';
import globals from 'globals';

export default [
  js.configs.recommended,
  {
    files: ['**/*.js', '**/*.mjs'],
    languageOptions: { globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      'eqeqeq': 'error',
      'no-control-regex': 'off',  // charts/text.js replaces control characters
      'no-implicit-globals': 'error',
      'no-shadow': 'error',
      'no-unused-vars': ['error', { args: 'after-used', argsIgnorePattern: '^_' }],
      'no-var': 'error',
      'prefer-const': ['error', { destructuring: 'all' }],
    },
  },
  { files: ['**/*.mjs', '**/eslint.config.js'], languageOptions: { globals: globals.node } },
];
