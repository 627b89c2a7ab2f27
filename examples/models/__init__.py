"""Well-known models as Relay text with seeded weights.

python -m mirstack.examples.models NAME --out FOLDER
"""
