"""Who is calling: API keys, operators' logins, and the gate that every face asks."""
